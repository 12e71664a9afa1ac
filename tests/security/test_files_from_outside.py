"""Files that somebody else made: small ones that unpack to large ones, deep ones, endless ones, and damaged ones."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from command import run_main

import heedful
from heedful.errors import HeedfulError, Invalid, Unavailable
from heedful.memory import documents
from heedful.model import limits
from heedful.settings import load
from heedful.testing import WordEmbedder
from heedful.transfer import export_file, foreign, import_file
from heedful.transfer.foreign import SYSTEMS, import_from

MEMORY = b'{"results":[{"id":"1","memory":"Ada is the CEO."}]}'
BOMB = 100_000_000


def zipped(path: Path, content: bytes = MEMORY, *, times: int = 0, members: int = 1) -> Path:
    """An archive with a file that has a megabyte of spaces so many times."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number in range(members):
            with archive.open(f"{number}.json", "w", force_zip64=True) as file:
                for _ in range(times):
                    file.write(b" " * 1_000_000)
                file.write(content)
    return path


def tarred(path: Path, opener: Callable[..., io.BufferedIOBase], size: int, *, header: bool) -> Path:
    """An archive with one file of spaces, or with a header as large."""
    with opener(path, "wb") as packed:
        info = tarfile.TarInfo("memories.json")
        info.size = size
        if header:
            info.type = tarfile.XHDTYPE
        packed.write(info.tobuf())
        for _ in range(size // 1_000_000):
            packed.write(b" " * 1_000_000)
        packed.write(b"\0" * 1024)
    return path


def holes(path: Path) -> Path:
    """An archive with a file that is a hole of terabytes, in the format of GNU."""
    block = bytearray(tarfile.TarInfo("memories.json").tobuf(tarfile.GNU_FORMAT))
    block[156:157] = tarfile.GNUTYPE_SPARSE
    block[386:483] = b"\0" * 97
    block[483:495] = b"\x80" + (1 << 42).to_bytes(11, "big")
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    path.write_bytes(bytes(block) + b"\0" * 1024)
    return path


MEASURE = """
import resource, sys
from pathlib import Path
import heedful
from heedful.errors import HeedfulError
from heedful.testing import WordEmbedder
from heedful.transfer.foreign import import_from

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

with heedful.open(":memory:", embedding=WordEmbedder(), worker=False) as memory:
    import_from(memory, "mem0", sys.argv[1])
    before = peak()
    for file in sys.argv[2:]:
        try:
            import_from(memory, "mem0", file)
        except HeedfulError as error:
            print(error)
        else:
            print("imported", file)
print("kilobytes", peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in kilobytes")
@pytest.mark.nightly
def test_archives_that_unpack_to_much_take_little_memory(tmp_path: Path) -> None:
    bombs = [
        zipped(tmp_path / "bomb.zip", times=BOMB // 1_000_000),
        zipped(tmp_path / "many.zip", times=5, members=BOMB // 5_000_000),
        *(
            tarred(tmp_path / f"bomb.{name}.{number}", opener, BOMB, header=header)
            for name, opener in (("gz", gzip.open), ("bz2", bz2.open), ("xz", lzma.open))
            for number, header in enumerate((False, True))
        ),
        holes(tmp_path / "holes.tar"),
    ]
    assert max(bomb.stat().st_size for bomb in bombs) < 500_000
    small = zipped(tmp_path / "small.zip")
    command = [sys.executable, "-c", MEASURE, str(small), *map(str, bombs)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    *messages, measured = done.stdout.splitlines()
    refused = [line for line in messages if "the limit is" in line]
    assert len(refused) == len(bombs), done.stdout
    for bomb, message in zip(bombs, refused, strict=True):
        assert str(bomb) in message
    assert int(measured.split()[1]) < 80_000, done.stdout


def test_an_archive_has_so_many_files_and_a_large_one_may_be_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "MAX_MEMBERS", 3)
    done = run_main(
        "--store", str(tmp_path / "x.db"), "import", str(zipped(tmp_path / "a.zip", members=4)), "--from", "mem0"
    )
    assert done.returncode != 0
    assert "a.zip has 4 files or more, the limit is 3" in done.stderr
    assert "unpack it" in done.stderr
    assert "Traceback" not in done.stderr


DEEP = "[" * 200_000 + "]" * 200_000
ODD = {
    "deep list": DEEP,
    "deep object": '{"a":' * 200_000 + "1" + "}" * 200_000,
    "deep inside": f'{{"results":[{{"id":"1","memory":{DEEP}}}]}}',
    "deep lines": f'{{"id":"1","memory":{DEEP}}}\n{{"id":"2","memory":"Ada"}}\n',
    "rather deep": '[{"id":"1","memory":"Ada","metadata":' + '{"a":' * 900 + "1" + "}" * 900 + "}]",
    "rather deep input": '[{"id":"1","input":' + '[{"content":' * 400 + '"a"' + "}]" * 400 + ',"output":"b"}]',
    "long number": '[{"id":"1","memory":"Ada","metadata":{"n":' + "9" * 10_000 + "}}]",
    "long number alone": "9" * 10_000,
    "large float": '[{"id":"1","memory":"Ada","metadata":{"n":1e999}}]',
    "long line": '{"id":"1","n":' + "9" * 10_000 + '}\n{"id":"2","memory":"Ada"}\n',
    "surrogate": '[{"id":"1","memory":"\\ud800"}]',
    "nothing": "",
    "one bracket": "[",
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("system", SYSTEMS)
def test_odd_json_is_refused_or_listed(what: str, system: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_text(ODD[what])
    done = run_main("--store", str(tmp_path / "x.db"), "--embedding", "fast", "import", str(file), "--from", system)
    assert "Traceback" not in done.stderr
    assert len(done.stdout + done.stderr) < 5_000
    if what.startswith("deep "):
        assert "is nested too deep" in done.stdout + done.stderr
    elif what.startswith("long "):
        assert "has a number with too many digits" in done.stdout + done.stderr


def test_a_file_of_wrong_lines_is_refused_as_a_whole(tmp_path: Path, store: heedful.Heedful) -> None:
    file = zipped(tmp_path / "wrong.zip", b"[" + b"{},\n" * 20_000 + b"{}]")
    with pytest.raises(Invalid, match="more than 10000 lines that are not mem0's") as refused:
        import_from(store, "mem0", file)
    assert "nothing was imported" in str(refused.value.remedy)


def damaged_archives() -> dict[str, bytes]:
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", MEMORY)
    whole = plain.getvalue()
    at = whole.index(b"PK\x01\x02")
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[at + 8] |= 1
    unknown = bytearray(whole)
    unknown[8] = unknown[at + 10] = 99
    broken = bytearray(whole)
    broken[40:50] = b"\xff" * 10
    return {
        "encrypted": bytes(encrypted),
        "unknown method": bytes(unknown),
        "broken": bytes(broken),
        "cut gzip": gzip.compress(MEMORY * 100)[:-20],
        "broken gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\0" + b"\xff" * 100,
        "no tar": gzip.compress(MEMORY),
        "cut xz": lzma.compress(os.urandom(5000))[:2000],
        "broken bz2": b"BZh9" + b"\xff" * 100,
    }


@pytest.mark.parametrize("what", damaged_archives())
def test_damaged_archives_say_so(what: str, tmp_path: Path, store: heedful.Heedful) -> None:
    file = tmp_path / "damaged"
    file.write_bytes(damaged_archives()[what])
    with pytest.raises(Unavailable, match="damaged can't be read"):
        import_from(store, "mem0", file)


class TestExportedProjects:
    def exported(self, tmp_path: Path) -> tuple[Path, list[bytes]]:
        with heedful.open(tmp_path / "from.db", embedding=WordEmbedder()) as memory:
            memory.remember("Ada is the CEO.")
        export_file(tmp_path / "from.db", tmp_path / "out.jsonl", project="default")
        return tmp_path / "out.jsonl", (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)

    def test_lines_have_a_length_and_a_depth(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("heedful.transfer.importing.MAX_LINE", 10_000)
        file, lines = self.exported(tmp_path)
        for line, message in (
            (b" " * 20_000 + lines[1], "line 2 has more than 10000 bytes"),
            (DEEP.encode()[:5_000] + b"\n", "line 2 is not JSON"),
            (b'{"type":"project","name":' + b"9" * 5_000 + b"}\n", "line 2"),
        ):
            file.write_bytes(b"".join([lines[0], line, *lines[2:]]))
            with pytest.raises(Invalid, match=message) as refused:
                import_file(tmp_path / "to.db", file, embedding=WordEmbedder())
            assert len(str(refused.value)) < 2_000

    def test_what_is_wrong_is_shown_in_part(self, tmp_path: Path) -> None:
        file, lines = self.exported(tmp_path)
        wrong = json.loads(lines[1]) | {"created_at": "x" * 1_000_000}
        file.write_bytes(b"".join([lines[0], json.dumps(wrong).encode() + b"\n", *lines[2:]]))
        with pytest.raises(Invalid, match="line 2") as refused:
            import_file(tmp_path / "to.db", file, embedding=WordEmbedder())
        assert len(str(refused.value)) < 2_000


def pdf(content: bytes) -> bytes:
    """A file with one page, which is described by these bytes."""
    packed = zlib.compress(content, 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj%s endobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Root 1 0 R/Size 6>>\nstartxref\n%d\n%%%%EOF" % len(body)
    return body + b"xref\n0 6\n0000000000 65535 f \n" + table + end


class TestRemembering:
    def refused(self, store: heedful.Heedful, file: Path) -> str:
        done = store.remember(file)
        assert not done.fact_ids
        assert len(done.errors) == 1
        return done.errors[0].message

    def test_a_page_that_unpacks_to_much_is_not_read(self, tmp_path: Path, store: heedful.Heedful) -> None:
        file = tmp_path / "bomb.pdf"
        file.write_bytes(pdf(b"BT/F 9 Tf(Ada is the CEO.)Tj ET"))
        assert store.remember(file).added == 1
        file.write_bytes(pdf(b"BT/F 9 Tf " + b"(a)Tj " * 2_000_000 + b"ET"))
        assert file.stat().st_size < 100_000
        message = self.refused(store, file)
        assert "describes page 1 in" in message
        assert f"the limit is {documents.MAX_PAGE_CONTENT}" in message

    @pytest.mark.parametrize(
        "content", [b"%PDF-1.4\n", pdf(b"[" * 100_000), pdf(b"q " * 10_000), b"%PDF" + b"<<" * 50_000]
    )
    def test_damaged_pdfs_are_listed(self, content: bytes, tmp_path: Path, store: heedful.Heedful) -> None:
        (tmp_path / "odd.pdf").write_bytes(content)
        assert "Traceback" not in "".join(each.message for each in store.remember(tmp_path / "odd.pdf").errors)

    def test_devices_and_large_texts_are_not_read(self, tmp_path: Path, store: heedful.Heedful) -> None:
        (tmp_path / "endless.txt").symlink_to("/dev/zero")
        assert "not a file" in self.refused(store, tmp_path / "endless.txt")
        os.mkfifo(tmp_path / "pipe.md")
        assert "not a file" in self.refused(store, tmp_path / "pipe.md")
        with (tmp_path / "large.md").open("wb") as file:
            file.truncate(limits.MAX_FILE * 10)
        assert "Split it" in self.refused(store, tmp_path / "large.md")
        with (tmp_path / "large.csv").open("wb") as file:
            file.truncate(limits.MAX_FILE + 1)
        assert f"the limit is {limits.MAX_FILE}" in self.refused(store, tmp_path / "large.csv")

    def test_a_table_has_so_many_columns(self, tmp_path: Path, store: heedful.Heedful) -> None:
        names = ",".join(["text", *(f"c{number}" for number in range(documents.MAX_COLUMNS))])
        (tmp_path / "wide.csv").write_text(names + "\na" * 100)
        assert "1001 columns, the limit is 1000" in self.refused(store, tmp_path / "wide.csv")


@pytest.mark.parametrize(
    "content", ["a = " + "[" * 200_000 + "]" * 200_000, "query_rows = " + "9" * 10_000, "#" * 2_000_000, "a = '\0'"]
)
def test_settings_that_cant_be_read_name_their_file(content: str, tmp_path: Path) -> None:
    (tmp_path / "heedful.toml").write_text(content)
    with pytest.raises(HeedfulError, match=r"heedful\.toml"):
        load({}, tmp_path)
