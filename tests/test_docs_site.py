"""The site of the docs: every page is in the sidebar, links lead somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import yaml
from sharing import make_once

ROOT = Path(__file__).parents[1]
SECTIONS = [
    "Get started",
    "Tutorials",
    "Integrations",
    "Learn from feedback",
    "Questions about data",
    "Insight and review",
    "Deploy and operate",
    "Security",
    "Reference",
    "Migrate",
]
PAGES = sorted(page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""

    def build(folder: Path) -> None:
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
        around = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "HEEDFUL_DOCS_URL": "https://docs.example.com/"}
        done = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr

    return make_once(tmp_path_factory, "docs-site", build)


@pytest.mark.nightly
def test_every_page_is_in_the_sidebar_of_the_site(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    links = set(re.findall(r'<a href="([^"#]*)" class="md-nav__link', home))
    for page in PAGES:
        address = page.removesuffix(".md").removesuffix("README")
        assert (f"{address}/".replace("//", "/") if address else ".") in links, f"docs/README.md does not list {page}"


def test_no_guide_is_long() -> None:
    lines = {page.name: page.read_text(encoding="utf-8").count("\n") for page in ROOT.glob("docs/howto/*.md")}
    assert {name: count for name, count in lines.items() if count > 180} == {}, "make two pages of it"


def test_the_sections_come_in_their_order(site: Path) -> None:
    listed = re.findall(r"^## (.+)$", (site / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == SECTIONS


def test_llms_txt_leads_to_the_text_of_every_page(site: Path) -> None:
    links = re.findall(r"^- \[.+?\]\(https://docs\.example\.com/(.+?)\)", (site / "llms.txt").read_text(), re.MULTILINE)
    assert set(PAGES) - {"README.md"} <= set(links)
    for link in links:
        assert (site / link).read_text(encoding="utf-8").startswith("# "), link


def test_search_knows_every_page(site: Path) -> None:
    index = orjson.loads((site / "search/search_index.json").read_bytes())
    found = {each["location"].partition("#")[0] for each in index["docs"]}
    assert len(found) >= len(PAGES)


SEARCHES = {
    "undo a rating": "howto/rate-answers/#undo-a-rating",
    "How do I connect a database?": "howto/connect-a-database/",
    "install": "install/",
    "erase a person": "howto/erase-a-person/",
    "how many ratings until a fact moves": "howto/how-many-ratings/",
}
"""What somebody types, and the page that should come first."""


def test_search_ranks_the_page_for_a_task_first(site: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (worker,) = site.glob("assets/javascripts/workers/search.*.js")
    command = [node, str(ROOT / "tests/site_search.js"), str(worker), str(site / "search/search_index.json"), *SEARCHES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert {query: first for query, (first, *_) in zip(SEARCHES, found, strict=True)} == SEARCHES


def test_code_in_tables_has_no_backslashes(site: Path) -> None:
    page = (site / "reference/python/index.html").read_text(encoding="utf-8")
    assert "<code>str | None</code>" in page
    assert not re.search(r"<td>.*\\\|.*</td>", page)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?:[^\s\">]+)", page.read_text())
        assert [each for each in loaded if not each.startswith("https://docs.example.com/")] == [], page


def test_a_page_that_nobody_lists_and_a_dead_link_fail_the_build(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "README.md").write_text("# Docs\n\n[There](there.md#not)\n")
    (folder / "there.md").write_text("# There\n")
    strict = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=yaml.BaseLoader)["validation"]
    (tmp_path / "mkdocs.yml").write_text(
        orjson.dumps({"site_name": "x", "validation": strict, "nav": ["README.md"]}).decode()
    )
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "there.md" in done.stderr
    assert "does not contain an anchor '#not'" in done.stderr
