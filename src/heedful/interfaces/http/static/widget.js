// <heedful-feedback>: thumbs or stars with a comment, saved to a Heedful server. <heedful-suggestion>: what a question
// probably means, to be confirmed with one click. No dependencies. Their attributes, properties, events and styles are in docs/howto/widget.md.
(() => {
  "use strict";

  const WORDS = {
    group: "Rate this answer", up: "Helpful", down: "Not helpful", star: "{n} of 5 stars",
    comment: "Anything to add? (optional)", send: "Send", cancel: "Cancel", edit: "Comment",
    undo: "Undo", retry: "Try again", saved: "Saved", undone: "Undone", waiting: "Still trying to save…",
    failed: "Couldn’t be saved", expired: "Reload the page to rate this", refused: "This can’t be rated here",
    meant: "Did you mean: {question}", confirm: "Yes", confirmed: "Confirmed",
    old: "Reload the page to confirm this", gone: "This can’t be confirmed any more",
  };

  const [THUMBS, STARS] = [["up", "down"], [1, 2, 3, 4, 5]];
  const TARGET = ["server", "project", "kind", "session-id", "qa-id", "execution-id", "chat-message-id"];
  const STATE = ["value", "comment-value", "feedback-id"];
  const ATTRIBUTES = [...TARGET, ...STATE, "token", "comment", "labels"];
  const MEANING = ["question", "suggestion", "execution-id", "connector-id"];
  const SUGGESTION = ["server", "project", "token", ...MEANING, "labels"];

  const DELAYS = [500, 1500, 4000]; // Milliseconds before the second, third and fourth try.
  const LONGEST_DELAY = 30_000; // However long a server asks for.
  const TIMEOUT = 20_000;
  const SETTLE = 600; // Arrow keys pass over stars that are not meant, so these are not saved at once.
  const MAX_COMMENT = 10_000;

  /** Why something was not saved; `passing` if the same may succeed later. */
  class Refusal extends Error {
    constructor(status, code, message, wait = null) {
      super(message);
      Object.assign(this, { status, code, wait });
      this.passing = status === 0 || status === 429 || status >= 500 || code === "in_progress";
      this.word = this.passing ? "failed" : status === 401 ? "expired" : "refused";
    }

    static async of(response) {
      const { code = "http", detail = `status ${response.status}` } = await response.json().catch(() => ({}));
      const seconds = Number.parseFloat(response.headers.get("Retry-After"));
      return new Refusal(response.status, code, detail, seconds > 0 ? Math.min(seconds * 1000, LONGEST_DELAY) : null);
    }
  }

  // crypto.randomUUID is missing on pages without TLS.
  const unique = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("-");

  /** Waits, but not longer than until the network is back. */
  const pause = (milliseconds) =>
    new Promise((resolve) => {
      setTimeout(resolve, milliseconds);
      addEventListener("online", resolve, { once: true });
    });

  /** Sends calls until they succeed, are refused, or have failed too often. */
  class RetryingClient {
    /** `renew` may replace the token, when it has expired; `waiting` is called before each pause. */
    constructor(base, token, renew, waiting) {
      Object.assign(this, { base, token, renew, waiting });
    }

    /** The answer. When it is an undo, what is gone after a try that may have succeeded was undone by that. */
    async send(method, path, body, { undo = false } = {}) {
      const headers = body === undefined ? {} : { "Content-Type": "application/json" };
      if (method === "POST") headers["Idempotency-Key"] = unique();
      let [renewed, unsure] = [false, false];
      for (let failures = 0; ; ) {
        const { token } = this;
        const answer = await this.once(method, path, { ...headers, Authorization: `Bearer ${token}` }, body);
        if (!(answer instanceof Refusal)) return answer;
        if (undo && unsure && answer.status === 404) return null;
        if (answer.status === 401 && !renewed) {
          renewed = true;
          await this.renew(answer.code);
          if (this.token !== token) continue;
        }
        if (!answer.passing || failures === DELAYS.length) throw Object.assign(answer, { token });
        unsure ||= answer.status !== 429;
        this.waiting();
        await pause(answer.wait ?? DELAYS[failures] * (0.75 + Math.random() / 2));
        failures += 1;
      }
    }

    async once(method, path, headers, body) {
      // A click on the way out still arrives: `keepalive` sees to that.
      const options = { credentials: "omit", cache: "no-store", redirect: "error", keepalive: true };
      const call = { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(TIMEOUT), ...options };
      try {
        const response = await fetch(this.base + path, call);
        return response.ok ? await response.json() : await Refusal.of(response);
      } catch (error) {
        return new Refusal(0, "network", String(error));
      }
    }
  }

  const NOTHING = Object.freeze({ value: null, comment: null });
  const same = (one, other) => one.value === other.value && one.comment === other.comment;
  const score = (value) => ({ up: 5, down: 1 })[value] ?? value;
  const rating = (value) => (score(value) > 3 ? "up" : score(value) < 3 ? "down" : null);
  const path = (...parts) => parts.map((part) => `/${encodeURIComponent(part)}`).join("");

  /** The opinion about one target: what is shown, what is to be saved, and what is saved. One call at a time. */
  class Opinion {
    /** `changed` is called with "shown", "saved", "undone" or a Refusal; then `lost` is what could not be saved. */
    constructor(target, client, saved, feedbackId, changed) {
      Object.assign(this, { target, client, saved, feedbackId, changed, shown: saved, pending: saved });
      Object.assign(this, { lost: null, timer: null, busy: false });
      this.entry = path("sessions", target.session_id, "entries", target.qa_id, "feedback");
    }

    /** Whether there is a way to retract it: what an earlier page saved has an id, unless it is about an answer. */
    get undoable() {
      return Boolean(this.target.qa_id || this.feedbackId || this.saved.value === null);
    }

    set(state, delay = 0) {
      this.shown = state;
      this.lost = null;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.commit(), delay);
      this.changed("shown");
      if (delay === 0) this.commit();
    }

    /** Saves what is shown, if it is delayed. */
    flush() {
      if (this.timer !== null) this.commit();
    }

    async commit() {
      clearTimeout(this.timer);
      this.timer = null;
      this.pending = this.shown;
      if (this.busy) return;
      this.busy = true;
      let outcome = "saved";
      try {
        // Of several quick changes, only the last is sent after the one under way.
        while (!same(this.pending, this.saved)) {
          const next = this.pending;
          await (next.value === null ? this.undo() : this.save(next));
          this.saved = next;
        }
        if (this.saved.value === null) outcome = "undone";
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        outcome = error;
        clearTimeout(this.timer);
        this.timer = null;
        this.lost = this.shown;
        this.shown = this.pending = this.saved;
      } finally {
        this.busy = false;
      }
      if (this.timer === null) this.changed(outcome);
    }

    async save({ value, comment }) {
      const { session_id, qa_id } = this.target;
      if (qa_id) {
        await this.client.send("PUT", this.entry, { feedback_score: score(value), feedback_text: comment });
      } else if (session_id) {
        const feedback = { rating: rating(value), comment };
        const reply = await this.client.send("POST", path("sessions", session_id, "feedback"), { feedback });
        this.feedbackId = reply?.feedback_id ?? null; // There is none if a hook on the server refused it.
      } else {
        const opinion = { is_positive: value === "up", feedback: comment };
        // An author has one opinion of a target: this replaces an earlier one.
        this.feedbackId = (await this.client.send("POST", "/feedback", { ...opinion, ...this.target })).id;
      }
    }

    async undo() {
      const { qa_id, session_id } = this.target;
      const undo = (method, path, body) => this.client.send(method, path, body, { undo: true });
      if (qa_id) await undo("DELETE", this.entry);
      else if (this.feedbackId && session_id) await undo("POST", path("events", this.feedbackId, "retract"), {});
      else if (this.feedbackId) await undo("DELETE", path("feedback", this.feedbackId));
      this.feedbackId = null;
    }
  }

  const STYLE = `
    :host { display: inline-block; max-width: 100%; font-size: .875em; line-height: 1.4;
      --_size: var(--heedful-size, 1.25rem); --_radius: var(--heedful-radius, .5rem);
      --_muted: var(--heedful-color, color-mix(in srgb, currentColor 68%, transparent));
      --_line: color-mix(in srgb, currentColor 28%, transparent);
      --_hover: color-mix(in srgb, currentColor 9%, transparent);
      --_up: var(--heedful-up, light-dark(#09734a, #4cd69a));
      --_down: var(--heedful-down, light-dark(#b42318, #ff8a7a));
      --_star: var(--heedful-star, light-dark(#b86e00, #ffc24b));
      --_accent: var(--heedful-accent, light-dark(#2f5bd7, #93b4ff));
      --_on-accent: var(--heedful-on-accent, light-dark(#fff, #0c1530)); }
    :host([hidden]), [hidden] { display: none !important; }
    .row { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .5rem; }
    .group { display: flex; gap: .125rem; }
    button, textarea { font: inherit; color: inherit; border-radius: var(--_radius); }
    button { border: 0; background: none; cursor: pointer; padding: .25rem .5rem; }
    :disabled { cursor: not-allowed; opacity: .5; }
    :focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; }
    .icon { padding: .375rem; color: var(--_muted); }
    .icon:hover:enabled, .text:hover { background: var(--_hover); }
    svg { display: block; width: var(--_size); height: var(--_size); fill: none; stroke: currentColor;
      stroke-width: 1.7; stroke-linejoin: round; }
    .icon[aria-pressed=true] { background: color-mix(in srgb, currentColor 13%, transparent);
      svg { fill: color-mix(in srgb, currentColor 40%, transparent); } }
    .up[aria-pressed=true] { color: var(--_up); } .down[aria-pressed=true], .status.bad { color: var(--_down); }
    .icon.star:is(*, :hover:enabled) { padding-inline: .1875rem; background: none; }
    .star.on { color: var(--_star); svg { fill: currentColor; } }
    @media (hover: hover) {
      .radiogroup:hover .star:enabled { color: var(--_star); svg { fill: currentColor; } }
      .radiogroup .star:hover ~ .star:enabled { color: var(--_muted); svg { fill: none; } }
    }
    .status, .text, label { color: var(--_muted); }
    .status:empty { margin-inline-end: -.5rem; }
    .text { text-decoration: underline var(--_line); text-underline-offset: .2em; }
    form { margin-block-start: .5rem; width: 26rem; max-width: 100%; }
    textarea { display: block; box-sizing: border-box; width: 100%; min-height: 4.5em; padding: .5rem .625rem;
      margin-block: .25rem .5rem; border: 1px solid var(--_muted); background: none; }
    .send { background: var(--_accent); color: var(--_on-accent); padding: .3125rem .875rem; font-weight: 600; }
    @media (prefers-reduced-motion: no-preference) {
      .icon { transition: color .12s, background-color .12s; }
      .icon[aria-pressed=true] svg, .star[aria-checked=true] svg { animation: pop .22s ease-out; }
      @keyframes pop { 40% { transform: scale(1.22); } }
    }`;

  const THUMB =
    "M3.5 10.5h3.2v9.2H3.5zM8.7 10.6l3.4-7.1c1.5 0 2.5 1.2 2.3 2.7l-.5 3.4h4.7c1.3 0 2.3 1.2 2 2.5" +
    "l-1.4 6c-.2.9-1 1.6-2 1.6H8.7z";
  const STAR = "M12 3.2l2.5 6.1 6.6.5-5 4.3 1.5 6.5L12 17.1l-5.6 3.5 1.5-6.5-5-4.3 6.6-.5z";

  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);

  /** An element; texts among the children stay texts. */
  const make = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  const icon = (d, flipped = false) => {
    const [picture, line] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
    picture.setAttribute("viewBox", "0 0 24 24");
    picture.setAttribute("aria-hidden", "true");
    line.setAttribute("d", d);
    if (flipped) line.setAttribute("transform", "matrix(1 0 0 -1 0 24)");
    picture.append(line);
    return picture;
  };

  const button = (part, name, press) => {
    const made = make("button", { type: "button", class: "text", part }, name);
    made.addEventListener("click", press);
    return made;
  };

  const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

  /** All texts, those of the page in place of the English ones. */
  const labelsOf = (element) => {
    try {
      return { ...WORDS, ...JSON.parse(element.getAttribute("labels") ?? "{}") };
    } catch (error) {
      console.error(`${element.localName}: labels must be a JSON object`, error);
      return WORDS;
    }
  };

  const baseOf = (element) => element.server.replace(/\/+$/, "") + path("v1", "projects", element.project ?? "default");

  const notify = (element, name, detail) =>
    element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));

  /** Notifies the page that the token has expired, and asks its `refreshToken` for another. */
  const renewToken = async (element, code) => {
    notify(element, "heedful-token-expired", { code });
    try {
      element.token = (await element.refreshToken?.()) ?? element.token;
    } catch (error) {
      console.error(`${element.localName}: refreshToken failed`, error);
    }
  };

  /** Gives an element its shadow, and the properties that a page had set before this script came. */
  const prepare = (element, attributes) => {
    if (element.shadowRoot === null) element.attachShadow({ mode: "open" }).adoptedStyleSheets = [sheet];
    for (const name of attributes.map(camel).filter((each) => Object.hasOwn(element, each))) {
      const value = element[name];
      delete element[name];
      element[name] = value;
    }
  };

  class HeedfulFeedback extends HTMLElement {
    static observedAttributes = ATTRIBUTES;

    #opinion = null;
    #outcome = null; // The last of "shown", "waiting", "saved", "undone" and Refusals.
    #writing = false;
    #parts = null;
    #known = {}; // The attributes that were last looked at.
    #looking = false;
    #flush = () => this.#opinion?.flush();

    connectedCallback() {
      prepare(this, ATTRIBUTES);
      addEventListener("pagehide", this.#flush);
      this.#look();
    }

    disconnectedCallback() {
      removeEventListener("pagehide", this.#flush);
      this.#flush();
    }

    attributeChangedCallback() {
      if (this.#looking) return;
      this.#looking = true;
      // Pages set several attributes in a row: they are looked at together.
      queueMicrotask(() => {
        this.#looking = false;
        if (this.isConnected) this.#look();
      });
    }

    /** "up" or "down", 1 to 5, or null: what is shown now. */
    get value() {
      return this.#opinion?.shown.value ?? null;
    }

    get labels() {
      return labelsOf(this);
    }

    get #choices() {
      return this.kind === "stars" && this.sessionId ? STARS : THUMBS;
    }

    get #stars() {
      return this.#choices === STARS;
    }

    #look() {
      const known = Object.fromEntries(ATTRIBUTES.map((name) => [name, this.getAttribute(name)]));
      const changed = (...names) => this.#parts === null || names.some((name) => known[name] !== this.#known[name]);
      const other = changed(...TARGET, ...STATE) || (this.#opinion === null && changed("token"));
      const redrawn = other || changed("labels");
      this.#known = known;
      if (other) this.#begin();
      if (redrawn) this.#draw();
      if (this.#opinion !== null) this.#opinion.client.token = this.token;
      const renewed = this.#outcome?.word === "expired" && this.#outcome.token !== this.token;
      if (renewed) this.#opinion.set(this.#opinion.lost);
      this.#update();
    }

    #begin() {
      this.#flush();
      this.#opinion = this.#outcome = null;
      this.#writing = false;
      const target = this.#target();
      const missing = ["server", "token"].filter((name) => !this[name]);
      if (target === null) missing.push("one of session-id, execution-id and chat-message-id");
      if (missing.length > 0) {
        console.error(`heedful-feedback: nothing can be saved without ${missing.join(" and ")}`, this);
        return;
      }
      if (this.kind === "stars" && !this.#stars) {
        console.error("heedful-feedback: there are no stars for executions and messages, only thumbs", this);
      }
      const value = this.#choices.find((each) => String(each) === this.getAttribute("value"));
      const saved = value === undefined ? NOTHING : { value, comment: this.commentValue || null };
      // An opinion about another target is still saved, with the token for that, but no longer shown.
      const current = () => this.#opinion === opinion;
      const changed = (outcome) => current() && this.#changed(outcome);
      const renew = async (code) => {
        if (current()) await renewToken(this, code);
        if (current()) client.token = this.token;
      };
      const client = new RetryingClient(baseOf(this), this.token, renew, () => changed("waiting"));
      const opinion = new Opinion(target, client, saved, this.feedbackId || null, changed);
      this.#opinion = opinion;
    }

    #target() {
      const { sessionId, qaId, executionId, chatMessageId } = this;
      if ([sessionId, executionId, chatMessageId].filter(Boolean).length !== 1) return null;
      if (executionId) return { execution_id: executionId };
      if (chatMessageId) return { chat_message_id: chatMessageId };
      return qaId ? { session_id: sessionId, qa_id: qaId } : { session_id: sessionId };
    }

    #changed(outcome) {
      const { saved, lost, target, feedbackId } = this.#opinion;
      this.#outcome = outcome;
      if (outcome === "undone") this.#parts.text.value = "";
      this.#writing &&= this.value !== null;
      this.#writing ||= lost !== null && lost.comment !== saved.comment;
      this.#update();
      if (outcome instanceof Refusal) {
        const { status, code, message } = outcome;
        notify(this, "heedful-error", { status, code, message, target, lost, ...saved });
      } else if (outcome === "saved" || outcome === "undone") {
        notify(this, "heedful-feedback", { ...saved, target, feedbackId });
      }
    }

    #rate(value, delay = 0) {
      const { shown } = this.#opinion;
      this.#writing ||= shown.value === null;
      if (value !== shown.value) this.#opinion.set({ value, comment: shown.comment }, delay);
    }

    #press(value, event) {
      if (value !== this.value) this.#rate(value);
      else if (this.#stars) this.#flush();
      // The second half of a double click is not meant to undo the first.
      else if (event.detail < 2 && this.#opinion.undoable) this.#opinion.set(NOTHING);
    }

    #comment(event) {
      event.preventDefault();
      const text = this.#parts.text.value.replaceAll("\0", "").trim();
      this.#opinion.set({ value: this.value, comment: (text.toWellFormed?.() ?? text) || null });
      this.#write(false);
    }

    #write(writing) {
      this.#writing = writing;
      this.#parts.text.value ||= this.#opinion.shown.comment ?? "";
      this.#update();
      (writing ? this.#parts.text : this.#parts.edit).focus();
    }

    #draw() {
      const words = this.labels;
      const choices = this.#choices.map((value) => {
        const [part, role, shape] = this.#stars ? ["star", "radio", STAR] : [value, "button", THUMB];
        const made = button(part, icon(shape, value === "down"), (event) => this.#press(value, event));
        const name = words[value] ?? String(words.star).replace("{n}", value);
        return Object.assign(made, { className: `icon ${part}`, role, ariaLabel: name, title: name });
      });
      const status = make("span", { role: "status", class: "status", part: "status" });
      // What is pressed here goes away: the focus goes to what stays.
      const retry = button("retry", words.retry, () => (choices[0].focus(), this.#opinion.set(this.#opinion.lost)));
      const undo = button("undo", words.undo, () => (choices[0].focus(), this.#opinion.set(NOTHING)));
      const edit = button("edit", words.edit, () => this.#write(true));
      const text = make("textarea", { id: "text", part: "textarea", dir: "auto", maxlength: MAX_COMMENT });
      const send = make("button", { type: "submit", class: "send", part: "send" }, words.send);
      const actions = make("div", {}, send, button("cancel", words.cancel, () => this.#write(false)));
      const label = make("label", { for: "text", part: "label" }, words.comment);
      const form = make("form", { part: "comment" }, label, text, actions);
      form.addEventListener("submit", (event) => this.#comment(event));
      const role = this.#stars ? "radiogroup" : "group";
      const group = make("div", { role, class: `group ${role}`, part: "group", "aria-label": words.group }, ...choices);
      group.addEventListener("keydown", (event) => this.#stars && this.#move(event, choices.indexOf(event.target) + 1));
      group.addEventListener("focusout", (event) => group.contains(event.relatedTarget) || this.#flush());
      text.value = this.#parts?.text.value ?? "";
      this.#parts = { choices, words, status, retry, undo, edit, form, text };
      this.shadowRoot.replaceChildren(make("div", { class: "row" }, group, status, retry, undo, edit), form);
    }

    #move(event, from) {
      const ahead = getComputedStyle(this).direction === "rtl" ? -1 : 1;
      const steps = { ArrowRight: ahead, ArrowLeft: -ahead, ArrowUp: 1, ArrowDown: -1, Home: -5, End: 5 };
      if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const to = Math.min(5, Math.max(1, from + steps[event.key]));
      this.#rate(to, SETTLE);
      this.#parts.choices[to - 1].focus();
    }

    #update() {
      const { choices, words, status, retry, undo, edit, form } = this.#parts;
      const [value, outcome] = [this.value, this.#outcome];
      choices.forEach((each, index) => {
        const chosen = this.#choices[index] === value;
        each.disabled = this.#opinion === null;
        each[this.#stars ? "ariaChecked" : "ariaPressed"] = String(chosen);
        if (!this.#stars) return;
        each.classList.toggle("on", index < value);
        each.tabIndex = chosen || (value === null && index === 0) ? 0 : -1;
      });
      const word = outcome?.word ?? outcome;
      status.textContent = words[word] ?? "";
      status.classList.toggle("bad", outcome instanceof Refusal);
      retry.hidden = word !== "failed" && word !== "expired";
      undo.hidden = value === null || !this.#opinion.undoable;
      const commentable = this.comment && value !== null;
      form.hidden = !commentable || !this.#writing;
      edit.hidden = !commentable || this.#writing;
    }
  }

  /** What a question probably means, and a button that confirms it: then it is run, and proven for the question. */
  class HeedfulSuggestion extends HTMLElement {
    static observedAttributes = SUGGESTION;

    #outcome = null; // The last of "shown", "waiting", "confirmed" and Refusals; null before a click.
    #drawing = false;

    connectedCallback() {
      prepare(this, SUGGESTION);
      this.#draw();
    }

    attributeChangedCallback(name) {
      if (MEANING.includes(name)) this.#outcome = null;
      if (this.#drawing) return;
      this.#drawing = true;
      queueMicrotask(() => {
        this.#drawing = false;
        if (this.isConnected) this.#draw();
      });
    }

    get labels() {
      return labelsOf(this);
    }

    get #meaning() {
      return MEANING.map((name) => this.getAttribute(name)).join("\n");
    }

    async #confirm() {
      if (this.#outcome !== null && !(this.#outcome instanceof Refusal)) return;
      const { question, executionId, connectorId } = this;
      const meaning = this.#meaning;
      // Another suggestion may be shown before this one is confirmed.
      const show = (outcome) => meaning === this.#meaning && this.#show(outcome);
      const renew = async (code) => {
        await renewToken(this, code);
        client.token = this.token;
      };
      const client = new RetryingClient(baseOf(this), this.token, renew, () => show("waiting"));
      const body = { user_query: question, execution_id: executionId, connector_id: connectorId };
      show("shown");
      try {
        const execution = await client.send("POST", "/confirm-suggestion", body);
        show("confirmed");
        notify(this, "heedful-confirmed", { question, execution });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        show(error);
        const { status, code, message } = error;
        notify(this, "heedful-error", { status, code, message, question });
      }
    }

    #show(outcome) {
      this.#outcome = outcome;
      const words = this.labels;
      const [status, confirm] = ["[role=status]", "button"].map((each) => this.shadowRoot.querySelector(each));
      const refused = outcome instanceof Refusal;
      const word = refused ? { failed: "failed", expired: "old", refused: "gone" }[outcome.word] : outcome;
      status.textContent = words[word] ?? "";
      status.classList.toggle("bad", refused);
      // Not `disabled`, which would lose the focus.
      confirm.ariaDisabled = String(outcome !== null && !refused);
    }

    #draw() {
      const missing = ["server", "token", "question", "suggestion", "executionId"].filter((name) => !this[name]);
      if (missing.length > 0) {
        console.error(`heedful-suggestion: nothing can be confirmed without ${missing.join(" and ")}`, this);
        this.shadowRoot.replaceChildren();
        return;
      }
      const words = this.labels;
      const meant = make("span", { part: "meant", dir: "auto" }, words.meant.replace("{question}", () => this.suggestion));
      const confirm = button("confirm", words.confirm, () => this.#confirm());
      confirm.className = "send";
      const status = make("span", { role: "status", class: "status", part: "status" });
      const focused = this.shadowRoot.activeElement !== null;
      this.shadowRoot.replaceChildren(make("div", { class: "row", part: "suggestion" }, meant, confirm, status));
      if (focused) confirm.focus();
      this.#show(this.#outcome);
    }
  }

  // Every attribute is a property, too.
  for (const [kind, names] of [[HeedfulFeedback, ATTRIBUTES], [HeedfulSuggestion, SUGGESTION]]) {
    for (const name of names) {
      const own = Object.getOwnPropertyDescriptor(kind.prototype, camel(name));
      Object.defineProperty(kind.prototype, camel(name), {
        get: own?.get ?? function () { return name === "comment" ? this.hasAttribute(name) : this.getAttribute(name); },
        set(value) {
          if (value === null || value === undefined || value === false) this.removeAttribute(name);
          else this.setAttribute(name, value === true ? "" : typeof value === "object" ? JSON.stringify(value) : value);
        },
      });
    }
  }

  if (!customElements.get("heedful-feedback")) customElements.define("heedful-feedback", HeedfulFeedback);
  if (!customElements.get("heedful-suggestion")) customElements.define("heedful-suggestion", HeedfulSuggestion);
})();
