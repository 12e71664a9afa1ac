"""The documentation is complete, current, and points at things that exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import click
import grimp
import pytest

import heedful
from docs import fits
from heedful import notifications
from heedful.api import (
    Chat,
    ChatSessions,
    Connectors,
    Executions,
    FeedbackService,
    GoldenExamples,
    Insight,
    Jobs,
    Keys,
    Review,
    Sessions,
)
from heedful.compat import cognee, mongodb_session_manager, text2everything
from heedful.interfaces.cli.main import cli

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GUIDES = [ROOT / "docs/start.md", *sorted(ROOT.glob("docs/howto/*.md"))]
DEFAULT_PAGES = [
    "README",
    "start",
    "concepts",
    "tutorials/support-bot",
    "tutorials/coding-agent",
    "howto/how-many-ratings",
    "howto/improve-from-feedback",
    "howto/what-is-learnt",
]
"""What a newcomer reads first about ranking."""
PUBLIC = {"heedful", "__main__"}
"""The public names, which are made of what is drawn."""

COMMON = frozenset(
    {"model", "results", "errors", "settings", "clock", "threads", "version", "request_context", "caching", "loading"}
)
"""Modules that all may use: the picture of the layers leaves them out."""

METHODS = [
    name for name in dir(heedful.Heedful) if name[0] != "_" and inspect.isfunction(getattr(heedful.Heedful, name))
]
NAMESPACES = [("sessions", Sessions), ("insight", Insight), ("review", Review)]
INNER_METHODS = [(place, name) for place, owner in NAMESPACES for name in vars(owner) if not name.startswith("_")]
EXECUTIONS: dict[str, type] = {
    "connectors": Connectors,
    "executions": Executions,
    "feedback": FeedbackService,
    "chat": Chat,
    "chat_sessions": ChatSessions,
    "golden_examples": GoldenExamples,
    "keys": Keys,
    "jobs": Jobs,
}
EXECUTION_METHODS = [(place, name) for place, owner in EXECUTIONS.items() for name in vars(owner) if name[0] != "_"]
SUBCOMMANDS = [
    (name, below) for name, group in cli.commands.items() if isinstance(group, click.Group) for below in group.commands
]
COMPAT = [cognee, mongodb_session_manager, text2everything]

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def generator() -> ModuleType:
    """docs/generate.py, which is not installed and may not be on the path."""
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module("docs.generate")
    finally:
        sys.path.remove(str(ROOT))


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.nightly
def test_the_reference_is_what_the_code_says_now() -> None:
    made: dict[str, str] = generator().pages()
    remaining = {page.name: text(page) for page in ROOT.glob("docs/reference/*.md")}
    assert sorted(remaining) == sorted(made)
    for name, page in made.items():
        assert remaining[name] == page, f"docs/reference/{name} is out of date: run make docs"


def test_the_stubs_are_what_the_code_says_now() -> None:
    generator()
    made: dict[Path, str] = importlib.import_module("docs.stubs").stubs()
    for file, stub in made.items():
        assert text(file) == stub, f"{file.name} is out of date: run make docs"


@pytest.mark.slow
def test_troubleshooting_has_every_error_code() -> None:
    headings = re.findall(r"^### (\w+)$", text(ROOT / "docs/reference/troubleshooting.md"), re.MULTILINE)
    assert sorted(headings) == sorted(generator().codes())


def test_the_reference_has_every_public_name() -> None:
    page = text(ROOT / "docs/reference/python.md").replace("\\_", "_")
    for name in heedful.__all__:
        assert f"heedful.{name}" in page, name


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_in_a_guide(method: str) -> None:
    called = re.compile(rf"\.{method}\(|`{method}(\(…\)|\(.*?\))?`")
    assert any(called.search(text(page)) for page in GUIDES), f"no guide mentions {method}"


@pytest.mark.parametrize(("place", "method"), INNER_METHODS)
def test_every_method_of_sessions_and_insight_is_in_a_guide(place: str, method: str) -> None:
    called = re.compile(rf"\.{place}\.{method}\(|`{method}(\(…\)|\(.*?\))?`|`{place}\.{method}\(")
    assert any(called.search(text(page)) for page in GUIDES), f"no guide mentions {place}.{method}"


@pytest.mark.parametrize(("place", "method"), INNER_METHODS)
def test_every_method_of_sessions_and_insight_is_in_the_reference(place: str, method: str) -> None:
    assert f"### {place}.{method}\n" in text(ROOT / "docs/reference/sessions.md")


@pytest.mark.parametrize(("place", "method"), EXECUTION_METHODS)
def test_every_method_about_executions_is_in_a_guide(place: str, method: str) -> None:
    called = re.compile(rf"\b{place}\.{method}\b")
    assert any(called.search(text(page)) for page in GUIDES), f"no guide mentions {place}.{method}"


@pytest.mark.parametrize(("place", "method"), EXECUTION_METHODS)
def test_every_method_about_executions_is_in_the_reference(place: str, method: str) -> None:
    assert f"### {place}.{method}\n" in text(ROOT / "docs/reference/executions.md")


def test_every_call_of_the_client_of_text2everything_is_in_its_guide() -> None:
    guide = text(ROOT / "docs/coming-from/text2everything.md")
    for place, part in vars(text2everything.Text2EverythingClient()).items():
        if not place.startswith("_"):
            assert f"`{place}.{next(name for name in vars(type(part)) if name[0] != '_')}`" in guide
            for name in vars(type(part)):
                assert name.startswith("_") or re.search(rf"\b{name}\b", guide), f"{place}.{name}"


@pytest.mark.parametrize("name", notifications.__all__)
def test_every_name_of_alerts_is_in_the_reference(name: str) -> None:
    assert f"### heedful.notifications.{name}\n" in text(ROOT / "docs/reference/hooks-and-alerts.md")


@pytest.mark.parametrize("module", COMPAT, ids=lambda module: module.__name__)
def test_every_name_of_other_systems_is_in_the_reference_and_its_guide(module: ModuleType) -> None:
    reference = text(ROOT / "docs/reference/compat.md")
    last = module.__name__.rpartition(".")[2].replace("_", "-")
    guide = text(ROOT / f"docs/coming-from/{last}.md")
    for name in module.__all__:
        assert f"### {name}\n" in reference or f"`{name}`" in reference, name
        assert re.search(rf"\b{name}\b", guide), name


@pytest.mark.parametrize("name", ["open", "aopen", "connect", "aconnect", "etag", "reembed"])
def test_every_function_is_in_a_guide(name: str) -> None:
    assert any(f"heedful.{name}(" in text(page) for page in GUIDES), f"no guide mentions {name}"


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_is_in_a_guide(command: str) -> None:
    run = re.compile(rf"\bheedful (--\S+ \S+ )*{command}\b")
    assert any(run.search(text(page)) for page in GUIDES), f"no guide runs heedful {command}"


@pytest.mark.parametrize(("command", "below"), SUBCOMMANDS)
def test_every_subcommand_is_in_a_guide(command: str, below: str) -> None:
    run = re.compile(rf"\bheedful (--\S+ \S+ )*{command} {below}\b(?!-)")
    assert any(run.search(text(page)) for page in GUIDES), f"no guide runs heedful {command} {below}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", text(page))):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{_name(page)} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{_name(page)} links to {link}"


def anchors(page: Path) -> set[str]:
    """The names that a forge gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs/benchmarks.md"], ids=_name)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text(ROOT / "Makefile"), re.MULTILINE))
    named = re.findall(r"(?:^|`)make ([a-z][a-z -]*)", text(page), re.MULTILINE)
    assert named
    for target in " ".join(named).split():
        assert target in targets, f"{_name(page)} names make {target}"


def test_every_target_is_described() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", text(ROOT / "Makefile"), re.MULTILINE)) - {"help"}
    contributing, benchmarks = text(ROOT / "CONTRIBUTING.md"), text(ROOT / "docs/benchmarks.md")
    for target in targets:
        if target.startswith("bench"):
            assert re.search(rf"^make {target} +# ", benchmarks, re.MULTILINE), target
        else:
            assert f"| `make {target}` |" in contributing, target


@pytest.mark.parametrize("extra", fits.EXTRAS)
def test_the_oldest_version_of_a_framework_is_listed(extra: str) -> None:
    assert f"\n| {fits.named(extra)} | " in text(fits.PAGE), "run python -m docs.fits"


def test_the_readme_is_short() -> None:
    assert len(text(ROOT / "README.md").splitlines()) <= 120


def test_the_quick_start_begins_with_what_works_in_a_clone() -> None:
    quick_start = text(ROOT / "README.md").partition("\n## Quick start\n")[2].partition("\n## ")[0]
    clone, install, *_ = re.findall(r"^```sh\n(.*?)^```$", quick_start, re.MULTILINE | re.DOTALL)
    assert [line.split("#")[0].split()[:2] for line in clone.splitlines()] == [
        ["git", "clone"],
        ["make", "demo"],
        ["make", "test"],
    ]
    assert install.startswith("pip install ./packages/heedful-minilm . ")


def test_the_readme_names_the_authors_of_its_feedback() -> None:
    given = [
        call
        for block in re.findall(r"^```python\n(.*?)^```$", text(ROOT / "README.md"), re.MULTILINE | re.DOTALL)
        for call in ast.walk(ast.parse(block))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if call.func.attr in {"add_feedback", "rate", "signal", "signal_recall"}
    ]
    assert given
    assert [call.lineno for call in given if "author" not in {keyword.arg for keyword in call.keywords}] == []


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in DEFAULT_PAGES)])
def test_what_a_newcomer_reads_shows_the_default_policy(page: str) -> None:
    fixed_blend = r"boost_by_usefulness=True|boost-by-usefulness|feedback.influence[= ]|usefulness.weight[= ]"
    blocks: list[str] = _FENCE.findall(text(ROOT / page))
    assert blocks
    assert [block for block in blocks if re.search(fixed_blend, block)] == []


def test_every_extra_can_be_found() -> None:
    extras = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    for extra in extras.keys() - {"bench", "dev"}:
        assert re.search(rf"^\|.*`{extra}`.*\|", text(ROOT / "docs/install.md"), re.MULTILINE), extra


def test_the_picture_of_the_layers_is_what_is_imported() -> None:
    picture = re.search(r"```mermaid\n(.*?)```", text(ROOT / "docs/architecture.md"), re.DOTALL)
    assert picture is not None
    node = r"(\w+)(?:\[[^\]]*\])?"
    drawn = set(re.findall(rf"^ *{node} --> {node}$", picture[1], re.MULTILINE))
    assert drawn == _reduced({edge for edge in imports() if COMMON.isdisjoint(edge) and PUBLIC.isdisjoint(edge)})


def test_what_the_picture_leaves_out_uses_nothing_in_it() -> None:
    assert not [edge for edge in imports() if edge[0] in COMMON and edge[1] not in COMMON]


def test_imports_have_no_circle() -> None:
    """Those of types alone and those inside functions count, too."""
    TopologicalSorter(modules()).prepare()


@cache
def modules() -> dict[str, set[str]]:
    """What each module of the package imports from it."""
    graph = grimp.build_graph("heedful", cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


@cache
def imports() -> frozenset[tuple[str, str]]:
    """Which top-level part of the package imports which; `heedful` is the package's own file."""
    edges = {(_part(module), _part(other)) for module, others in modules().items() for other in others}
    return frozenset(edge for edge in edges if edge[0] != edge[1])


def _reduced(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without those that follow from others: what a part imports by way of another one is not drawn."""
    below: dict[str, set[str]] = {}

    def reached(part: str) -> set[str]:
        if part not in below:
            direct = {end for start, end in edges if start == part}
            below[part] = direct.union(*(reached(each) for each in direct))
        return below[part]

    return {
        (start, end)
        for start, end in edges
        if not any(end in reached(other) for begin, other in edges if begin == start and other != end)
    }


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else module


WANTS = (
    "stop the service",
    "fill it",
    "read others' data",
    "change what others get",
    "act as another",
    "run code",
)
"""What an attacker may want."""


def threat_model() -> dict[str, dict[str, list[str]]]:
    """The tests of each cell, by attacker and what they want."""
    section = (ROOT / "docs/security.md").read_text().partition("## Threat model\n")[2].partition("\n## ")[0]
    found: dict[str, dict[str, list[str]]] = {}
    for part in section.split("\n### ")[1:]:
        rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]
        found[part.splitlines()[0]] = {wants: re.findall(r"`([^`]+::[^`]+)`", tests) for wants, _, tests in rows}
    return found


@cache
def declared_in(file: str) -> set[str]:
    """The tests of a file, those of classes as Class::test."""
    tree = ast.parse((ROOT / "tests" / file).read_text())
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    functions = [(f"{owner.name}::", each) for owner in classes for each in owner.body] + [
        ("", each) for each in tree.body
    ]
    return {prefix + each.name for prefix, each in functions if isinstance(each, ast.FunctionDef)}


def test_every_cell_of_the_threat_model_has_a_test() -> None:
    model = threat_model()
    assert len(model) == 15
    for attacker, cells in model.items():
        assert tuple(cells) == WANTS, attacker
        for wants, tests in cells.items():
            assert tests, (attacker, wants)
            for test in tests:
                file, _, name = test.partition("::")
                assert name in declared_in(file), test
