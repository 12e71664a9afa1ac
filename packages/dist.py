"""Builds what is published, checks it, and tries it in clean environments: `make dist`.

python packages/dist.py build         # in an environment with requirements/build.lock and tools.lock
python packages/dist.py try 3.13      # anywhere; without a version, on each supported Python

To try them, the wheels are installed into a new environment for each Python that is found, and `smoke.py` is run there.
Those that are not found are named. What that installs has no hashes: a release does it elsewhere than it builds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
MODEL = ROOT / "packages/heedful-minilm"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
IN_WHEEL = (
    "heedful/py.typed",
    "heedful/interfaces/http/examples.json",
    "heedful/interfaces/http/static/widget.js",
    "heedful/storage/migrations/run.py",
)
"""Files that no import would miss."""


def build() -> list[Path]:
    """The source distribution, the wheel that is built from it, and the wheel of the model."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT)])
    # The model downloads its weights during its build: a wheel is enough, and is the same on each platform.
    _run([sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(DIST), str(MODEL)])
    return built()


def built() -> list[Path]:
    """The files in dist/."""
    return sorted(file for file in DIST.iterdir() if file.is_file())


def check(files: Sequence[Path]) -> None:
    """Metadata that a package index accepts, and files that have to be inside."""
    _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)])
    wheel = next(file for file in files if file.name.startswith("heedful-") and file.suffix == ".whl")
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in IN_WHEEL if name not in names]
    stray = [name for name in names if not name.startswith(("heedful/", "heedful-"))]
    if missing or stray:
        raise SystemExit(f"{wheel.name}: missing {missing}, stray {stray}")
    with tarfile.open(next(file for file in files if file.name.endswith(".tar.gz"))) as source:
        names = [name.partition("/")[2] for name in source.getnames()]
    for name in ("README.md", "LICENSE", "pyproject.toml", "src/heedful/__init__.py", "tests/conftest.py"):
        if name not in names:
            raise SystemExit(f"the source distribution lacks {name}")


def interpreter(version: str) -> str | None:
    """A Python of this version: on the path, of pyenv, or of uv; None if there is none."""
    candidates = [
        *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")),
        *sorted(Path.home().glob(f".local/share/uv/python/cpython-{version}.*/bin/python3")),
        *filter(None, [shutil.which(f"python{version}")]),
    ]
    for each in candidates:
        # A shim of pyenv is found on the path even if it leads nowhere.
        tried = subprocess.run([str(each), "--version"], capture_output=True, text=True, check=False)
        if tried.stdout.startswith(f"Python {version}."):
            return str(each)
    return None


def try_on(python: str, wheels: Sequence[Path]) -> None:
    """Installs the wheels where nothing else is, and runs the smoke test outside of the repository."""
    with tempfile.TemporaryDirectory(prefix="heedful-dist-") as folder:
        _run([python, "-m", "venv", f"{folder}/venv"])
        main, model = (
            next(wheel for wheel in wheels if wheel.name.startswith(name)) for name in ("heedful-", "heedful_")
        )
        pip = [f"{folder}/venv/bin/pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--only-binary", ":all:", str(model), f"{main}[server]"])
        shutil.copy(ROOT / "packages/smoke.py", folder)
        _run([f"{folder}/venv/bin/python", "smoke.py"], folder)


def _run(command: Sequence[str], folder: str | Path = ROOT) -> None:
    if subprocess.run(command, cwd=folder, check=False).returncode:
        raise SystemExit(f"failed: {' '.join(command)}")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["build"]:
            check(build())
        case ["try", *versions]:
            found = {version: interpreter(version) for version in versions or PYTHONS}
            for python in filter(None, found.values()):
                try_on(python, [file for file in built() if file.suffix == ".whl"])
            absent = [version for version, python in found.items() if python is None]
            if absent:
                print(f"NOT TRIED, because there is no such Python here: {', '.join(absent)}")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
