// Niceties. Every page works without this file.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = (what, from = document) => Array.from(from.querySelectorAll(what));
  const typing = (at) => at.isContentEditable || /^(input|textarea|select)$/i.test(at.tagName);

  // The theme changes without a new page; the server remembers it.
  const NEXT = { auto: "light", light: "dark", dark: "auto" };
  let sent = Promise.resolve();
  for (const form of all("[data-theme-form]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const button = form.querySelector("button");
      const chosen = button.value;
      if (chosen === "auto") delete root.dataset.theme;
      else root.dataset.theme = chosen;
      // One after the other: of two quick clicks, the last one is remembered.
      const send = () =>
        fetch(form.action, { method: "POST", body: new URLSearchParams({ theme: chosen }), redirect: "manual" });
      sent = sent.then(send, send);
      button.value = NEXT[chosen];
      button.title = `Theme: ${chosen}`;
      button.querySelector(".sr").textContent = `Theme: ${chosen}; change to ${NEXT[chosen]}`;
    });
  }

  // A link that logs in once has its code behind the #, which no server is told.
  const code = location.hash.match(/^#once=([\w-]+)$/)?.[1];
  const key = document.querySelector("form[action='/login'] input[name=api_key]");
  if (code && key) {
    history.replaceState(null, "", location.pathname + location.search);
    key.value = code;
    key.form.submit();
  }

  // In a row that scrolls, the page that is open is in sight.
  const row = document.querySelector(".main-nav");
  const current = row?.querySelector("[aria-current]");
  if (row && current) row.scrollLeft = current.offsetLeft - row.clientWidth / 2 + current.clientWidth / 2;

  // What scrolls sideways can be scrolled with the keyboard.
  const reach = () => {
    for (const box of all(".scroll")) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  };
  document.addEventListener("toggle", reach, true);
  addEventListener("resize", reach);

  // Menus close when something else is clicked.
  document.addEventListener("click", (event) => {
    for (const menu of all("details.switch[open], details.sure[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  for (const button of all("[data-open]")) {
    button.hidden = false;
    button.addEventListener("click", () => document.getElementById(button.dataset.open).showModal());
  }

  for (const button of all("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      const before = button.lastChild.textContent;
      button.lastChild.textContent = " Copied";
      setTimeout(() => { button.lastChild.textContent = before; }, 1500);
    });
  }

  // What takes a while comes after the page: the link inside is what those without this file follow.
  const lazy = async (place) => {
    place.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(place.dataset.lazy, { headers: { "X-Fragment": "1" } });
      if (answer.ok && !answer.redirected) {
        place.innerHTML = await answer.text();
        listen(place);
      }
    } catch { /* The link stays. */ }
    place.removeAttribute("aria-busy");
  };

  // Tooltips of charts, at once and near the pointer or the focus.
  const tip = Object.assign(document.createElement("div"), { id: "tip", hidden: true });
  document.body.append(tip);
  const showTip = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    tip.textContent = event.currentTarget.dataset.tip;
    tip.hidden = false;
    const x = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 8);
    const y = box.top - tip.offsetHeight - 6;
    tip.style.left = `${x}px`;
    tip.style.top = `${y < 8 ? box.bottom + 6 : y}px`;
  };
  const listen = (from) => {
    reach();
    for (const shape of all("[data-tip]", from)) {
      shape.querySelector(":scope > title")?.remove();
      shape.addEventListener("pointerenter", showTip);
      shape.addEventListener("pointerleave", () => { tip.hidden = true; });
    }
  };
  listen(document);
  all("[data-lazy]").forEach(lazy);

  // Keys.
  let after = 0;
  const move = (step) => {
    const rows = all("[data-list] a[data-row]").filter((row) => row.offsetParent);
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
    rows[next].focus();
    rows[next].scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    const key = event.key;
    if (after && Date.now() - after < 1500) {
      after = 0;
      const link = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
      if (link) { event.preventDefault(); location.assign(link.href); }
      return;
    }
    if (key === "g") after = Date.now();
    else if (key === "j" || key === "k") { event.preventDefault(); move(key === "j" ? 1 : -1); }
    else if (key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (key === "?") document.getElementById("keys")?.showModal();
    else if (key === "Escape") all("details.switch[open], details.sure[open]").forEach((menu) => { menu.open = false; });
    else {
      const does = document.querySelector(`[data-press="${CSS.escape(key)}"]`);
      if (does) { event.preventDefault(); does.click(); }
    }
  });
})();
