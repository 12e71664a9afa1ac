"""The files of the bundled model: found without running any code of their packages, and checked before use."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from heedful import Unavailable
from heedful.providers.embedding import verified

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
    assert "pip install no-such-carrier" in (caught.value.remedy or "")
    assert "pip install ./packages/no-such-carrier" in (caught.value.remedy or "")
