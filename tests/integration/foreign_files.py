"""Files as other systems export them; the small ones are in tests/foreign."""

from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from pathlib import Path

FILES = Path(__file__).parents[1] / "foreign"


def cognee_archive(folder: Path) -> Path:
    """A COGX archive."""
    file = folder / "main.cogx.tar.gz"
    content = (FILES / "cogx_memories.jsonl").read_bytes()
    with tarfile.open(file, "w:gz") as archive:
        for name, data in (("manifest.json", b'{"cogx_version": "0.1"}'), ("memories.jsonl", content)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file


def hindsight_archive(folder: Path) -> Path:
    """A transfer archive of Hindsight."""
    file = folder / "bank.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("documents/000000.json", (FILES / "hindsight_document.json").read_bytes())
        archive.writestr("observations.json", '[{"text": "Travel is regulated.", "sources": []}]')
        archive.writestr("manifest.json", '{"schema_version": 1, "source_bank_id": "b", "document_count": 1}')
    return file


def put_all(folder: Path) -> None:
    """What the pages about other systems import."""
    cognee_archive(folder)
    hindsight_archive(folder)
    shutil.copy(FILES / "support-chat.json", folder)
