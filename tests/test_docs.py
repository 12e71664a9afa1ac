"""Every example in README.md and docs/ is run, and what it shows is what comes out."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from click.testing import CliRunner
from command import started
from foreign_files import put_all
from server import running

import heedful
from heedful.interfaces.cli.main import cli
from heedful.providers.embedding import bundled
from heedful.testing import WordEmbedder

pytestmark = pytest.mark.usefixtures("warm_processes")

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    # Those about agent frameworks are run where their framework is: by `make test-integrations`.
    + [page for page in ROOT.glob("docs/**/*.md") if page.parent.name != "integrations"]
)

RUN = ("python", "console")
SHOWN = ("sh", "text", "toml", "ini", "json", "nginx", "yaml", "mermaid", "html", "js", "typescript")
"""Blocks that are not run here: `make` and `pip` lines, output, files, pictures, pieces of web pages; TypeScript is run
by its own tests."""

COGNEE = "heedful.compat.cognee"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ID = r"([0-9a-f]{8}-[0-9a-f-]{27})"
_IDS = {
    "RECALL_ID": rf"recall_id {_ID}",
    "QA_ID": rf"qa_id {_ID}",
    "FEEDBACK_ID": rf"feedback {_ID}",
    "EXECUTION_ID": rf"execution {_ID}",
    "EXAMPLE_ID": rf"example {_ID}",
    "ALERT_ID": rf"(?s)^created .*?{_ID}",
    "EVENT_ID": rf"(?m)event {_ID}|^(?:used|ignored|helpful|not_helpful) .*?{_ID}",
    "MESSAGE_ID": rf"message {_ID}",
    "KEY_ID": rf"key_id {_ID}",
    "ITEM_ID": rf"(?m)^(?:entry|item) {_ID}:|(?:open|resolved|dismissed) .* {_ID} *$",
    "JOB_ID": rf"^improve {_ID}: waiting",
    "RESULT_ID": rf"\[{{id {_ID}",
    "FACT_ID": rf"(?m)^{_ID}  |^ +1 .* {_ID} *$",
}
"""Where the output of a command shows an id: a later RECALL_ID on the page stands for the last one seen."""

DATABASE = "chat_db"
SERVER = "mongodb://localhost:27017/"
"""The MongoDB of the pages: a test puts its own database on its own server in their place."""

POSTGRESQL = "postgresql://localhost/heedful"
"""The store on a server of the pages: a test puts a new database in its place."""

HTTP = "http://127.0.0.1:8000"
KEY = "hf_…"
"""The server of the pages, and its key. A page that says `heedful serve` starts one; for others, one runs already."""

SERVE = re.compile(r"(?m)^\$ .*\bheedful (--\S+ \S+ )*serve\b")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, its first line's number, and the text block that follows it directly, if one does."""

    kind: str
    body: str
    line: int
    output: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    matches = list(_FENCE.finditer(text))
    assert 2 * len(matches) == len(re.findall(r"^ *```", text, re.MULTILINE)), "a fence is indented or not closed"
    result = []
    for place, match in enumerate(matches):
        after = matches[place + 1] if place + 1 < len(matches) else None
        output = None
        if after is not None and after[1] == "text" and not text[match.end() : after.start()].strip():
            output = after[2]
        result.append(Block(match[1], match[2], text[: match.start()].count("\n") + 2, output))
    return result


class Reader:
    """Somebody who types a page in from top to bottom, in an empty folder.

    `mongodb_url` and `postgresql_url` are their databases; `setenv` sets a variable of their shell; `url` and `key` are
    of a server that runs.
    """

    def __init__(
        self,
        page: Path,
        setenv: Callable[[str, str], None],
        mongodb_url: str | None = None,
        postgresql_url: str | None = None,
        url: str | None = None,
        key: str | None = None,
    ) -> None:
        self._page = page
        self._setenv = setenv
        self._mongodb_url = mongodb_url
        self._postgresql_url = postgresql_url
        self._url = url
        self._key = key
        self._server = contextlib.ExitStack()
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._seen: dict[str, str] = {}

    def read(self) -> None:
        # One event loop for the page, as in a notebook.
        with asyncio.Runner() as loop:
            try:
                for block in blocks(self._page):
                    if block.kind == "python":
                        self._python(block, loop)
                    elif block.kind == "console":
                        self._console(block)
            finally:
                for value in list(self._names.values()):
                    _close(value, loop)
                self._server.close()

    def _python(self, block: Block, loop: asyncio.Runner) -> None:
        # Empty lines put the code where it stands in the page, so that a traceback names that line.
        text = "\n" * (block.line - 1) + self._with_server(block.body)
        code = compile(text, str(self._page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            result = eval(code, self._names)
            if inspect.iscoroutine(result):
                loop.run(result)
        expected = block.output if block.output is not None else ""
        assert printed.getvalue() == expected, f"{self._page}:{block.line} prints something else"

    def _with_server(self, text: str) -> str:
        if self._url is not None:
            text = text.replace(HTTP, self._url)
        if self._key is not None:
            text = text.replace(KEY, self._key)
        if self._postgresql_url is not None:
            text = text.replace(POSTGRESQL, self._postgresql_url)
        if self._mongodb_url is None:
            return text
        database = urlsplit(self._mongodb_url).path.strip("/")
        return re.sub(rf"{SERVER}({DATABASE})?", lambda _: str(self._mongodb_url), text).replace(DATABASE, database)

    def _console(self, block: Block) -> None:
        printed = ""
        for line in block.body.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                printed += self._command(block, self._with_server(line[2:]))
        if block.output is not None and "$ curl " in block.body:
            shown = self._with_server(block.output).strip()
            pattern = ".*?".join(map(re.escape, shown.split("…")))
            # What "…" stands for behind the last line may be nothing but its end.
            assert re.fullmatch(rf"{pattern}\s*", printed.lstrip(), re.DOTALL), (
                f"{self._page}:{block.line} prints:\n{printed}"
            )

    def _command(self, block: Block, line: str) -> str:
        """What a command prints."""
        words = shlex.split(line)
        environment = {}
        while "=" in words[0]:
            name, _, environment[name] = words.pop(0).partition("=")
        program, *arguments = words
        if program == "export":
            for name, _, value in (each.partition("=") for each in arguments):
                self._setenv(name, value)
            return ""
        if program == "curl":
            return self._curl(line)
        assert program == "heedful", f"{self._page}:{block.line} runs {program}"
        if {"serve", "dashboard", "--dashboard"} & set(arguments):
            self._serve(arguments, environment)
            return ""
        if arguments[-1] == "worker":
            # It would never end.
            arguments.append("--once")
        items = [self._seen.get(argument, argument) for argument in arguments]
        result = CliRunner().invoke(cli, items, catch_exceptions=True, env=environment)
        assert result.exit_code == 0, f"{self._page}: {line}\n{result.output}\n{result.exception!r}"
        self._look(result.stdout)
        return result.stdout

    def _curl(self, line: str) -> str:
        for name, value in self._seen.items():
            line = re.sub(rf"\b{name}\b", value, line)
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        assert done.returncode == 0, f"{self._page}: {line}\n{done.stderr}"
        self._look(re.sub(r'"(\w+)":"', r"\1 ", done.stdout))
        return done.stdout.rstrip("\n") + "\n"

    def _serve(self, arguments: list[str], environment: dict[str, str]) -> None:
        """Starts a server, in place of the one before."""
        self._server.close()
        running = self._server.enter_context(started(arguments, environment))
        self._url = running.url
        self._key = running.key or environment.get("HEEDFUL_ADMIN_KEY") or self._key

    def _look(self, printed: str) -> None:
        for name, pattern in _IDS.items():
            match = re.search(pattern, printed)
            if match is not None:
                self._seen[name] = next(filter(None, match.groups()))


def _close(value: Any, loop: asyncio.Runner) -> None:
    """Closes what a page left open, also where it did not come to its end."""
    if isinstance(value, heedful.Heedful | heedful.RemoteHeedful):
        value.close()
    elif isinstance(value, heedful.AsyncHeedful) or (isinstance(value, ModuleType) and value.__name__ == COGNEE):
        loop.run(value.close())


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with an ONNX model, and a double in place of the embedding server."""
    model = folder / "models" / "my-model"
    model.mkdir(parents=True)
    shutil.copy(bundled()._model, model / "model.onnx")
    shutil.copy(bundled()._tokenizer_file, model / "tokenizer.json")

    def serve(request: httpx.Request) -> httpx.Response:
        assert str(request.url) == "http://localhost:11434/v1/embeddings"
        vectors = WordEmbedder().embed(orjson.loads(request.content)["input"]).tolist()
        rows = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return httpx.Response(200, json={"data": rows})

    real = httpx.Client

    def client(**options: Any) -> httpx.Client:
        return real(**options, transport=httpx.MockTransport(serve))

    monkeypatch.setattr(httpx, "Client", client)


# What a page takes for granted.
PREPARED: dict[str, Callable[[Path, pytest.MonkeyPatch], None]] = {
    "docs/howto/choose-a-model.md": _models,
    **{f"docs/coming-from/{name}.md": lambda folder, _: put_all(folder) for name in ("cognee", "hindsight")},
}


LONG = ("docs/howto/use-the-dashboard.md",)
"""Pages that take more than half a minute: this one fills a store with four weeks of traffic."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.nightly] if _name(page) in LONG else [], id=_name(page)) for page in PAGES],
)
@pytest.mark.slow
def test_examples_do_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if _name(page) in PREPARED:
        PREPARED[_name(page)](tmp_path, monkeypatch)
    run = "\n".join(block.body for block in blocks(page) if block.kind in RUN)
    if "$ curl " in run and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    mongodb_url = request.getfixturevalue("mongodb_url") if SERVER in run else None
    postgresql_url = request.getfixturevalue("postgresql_url") if POSTGRESQL in run else None
    with contextlib.ExitStack() as served:
        if HTTP not in run or SERVE.search(run):
            reader = Reader(page, monkeypatch.setenv, mongodb_url, postgresql_url)
        else:
            server = served.enter_context(running(tmp_path / "served.db"))
            monkeypatch.setenv("HEEDFUL_API_KEY", server.key)
            reader = Reader(page, monkeypatch.setenv, mongodb_url, postgresql_url, server.url, server.key)
        reader.read()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_block_is_passed_over(page: Path) -> None:
    for block in blocks(page):
        assert block.kind in (*RUN, *SHOWN), f"{page}:{block.line} is of the kind {block.kind!r}"
        if block.kind == "sh":
            assert not re.search(r"(?m)^\W*heedful ", block.body), f"{page}:{block.line} must be a console block"
        if block.kind == "console":
            commands = [line for line in block.body.splitlines() if line.startswith("$ ")]
            assert commands, f"{page}:{block.line} has no command"


def test_the_pages_are_found() -> None:
    assert len(PAGES) > 20
    assert sum(block.kind == "python" for page in PAGES for block in blocks(page)) > 40
