"""What `mkdocs build` needs besides mkdocs.yml: the sidebar, links that leave docs/, and llms.txt.

The lists in docs/README.md are the sidebar, so that readers of the repository and of the site find the same. A
README.md of a folder lists the pages of that folder.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
INDEX = "README.md"
OUTSIDE = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "report.md"}
"""Files beside docs/ that are pages of the site, too."""

BOOSTS = {
    "start.md": 4.0,
    "install.md": 4.0,
    "tutorials/": 3.0,
    "howto/": 3.0,
    "coming-from/": 0.7,
    "integrations/": 0.7,
    "reference/": 0.3,
    "decisions/": 0.1,
    "benchmarks.md": 0.1,
    "internals.md": 0.1,
    "changelog.md": 0.05,
}
"""How much a page counts in the search, by how its path begins; 1 for all others."""

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_ITEM = re.compile(r"^- (?:\d+ )?\[([^\]]+)\]\(([^)#]+\.md)\)(?::\s+(.+(?:\n  .+)*))?", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the sidebar; `pages` are those that a folder's README.md lists."""

    title: str
    path: str
    about: str
    pages: tuple[Entry, ...] = field(default=())


def sections() -> dict[str, list[Entry]]:
    """The sections of docs/README.md with their pages, as paths in the site."""
    _, *parts = _SECTION.split(_read(INDEX))
    return {title: list(_entries(text, "")) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _entries(text: str, folder: str) -> Iterator[Entry]:
    for title, link, about in _ITEM.findall(text):
        path = _in_site(posixpath.join("docs", folder, link)) or link
        below = posixpath.dirname(path)
        is_folder = posixpath.basename(path) == INDEX
        yield Entry(title, path, " ".join(about.split()), tuple(_entries(_read(path), below)) if is_folder else ())


def _read(path: str) -> str:
    return (ROOT / "docs" / path).read_text(encoding="utf-8")


def _in_site(path: str) -> str | None:
    """Where in the site a file of the repository is, if it is there."""
    path = posixpath.normpath(path)
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE.get(path)


# What mkdocs calls.


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the sections into the sidebar. A folder that comes first in its section shares its pages with it."""
    nav: list[Any] = [{"Home": INDEX}]
    for title, entries in sections().items():
        items: list[dict[str, Any]] = []
        for place, entry in enumerate(entries):
            pages: list[dict[str, Any]] = [{each.title: each.path} for each in (entry, *entry.pages)]
            items += pages if place == 0 or not entry.pages else [{entry.title: pages}]
        nav.append({title: items})
    config.nav = nav
    # Only `mike` publishes the list that the menu of versions reads.
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike"}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages whose files are beside docs/."""
    for name, path in OUTSIDE.items():
        files.append(File.generated(config, path, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links out of docs/ to their page, or to the repository; where its address is not known, they are text.

    Also ranks the page in the search, and removes the backslashes of `|` in code: forges need them in tables, and
    Python-Markdown prints them.
    """
    path = page.file.src_uri
    page.meta["search"] = {"boost": next((boost for start, boost in BOOSTS.items() if path.startswith(start)), 1.0)}
    source = next((name for name, there in OUTSIDE.items() if there == path), f"docs/{path}")

    def led(found: re.Match[str]) -> str:
        mark, text, link, anchor = found.groups("")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        there = _in_site(target)
        if there is not None:
            return f"{mark}[{text}]({posixpath.relpath(there, posixpath.dirname(path))}{anchor})"
        return f"[{text}]({config.repo_url.rstrip('/')}/blob/HEAD/{target}{anchor})" if config.repo_url else text

    lines = [
        _CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in _LINK.sub(led, markdown).split("\n")
    ]
    return "\n".join(lines)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Puts the text of a page beside it, for those who read Markdown rather than HTML."""
    file = Path(config.site_dir, page.file.src_uri)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page.markdown or "", encoding="utf-8")
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Writes llms.txt: the sections, with links to the Markdown of each page."""
    base = f"{config.site_url.rstrip('/')}/" if config.site_url else ""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for title, entries in sections().items():
        lines += ["", f"## {title}", ""]
        for page in (each for entry in entries for each in (entry, *entry.pages)):
            about = f": {page.about}" if page.about else ""
            lines.append(f"- [{page.title}]({base}{page.path}){about}")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
