"""Looks for known vulnerabilities in the locked versions, and at the files that build and deploy: `make audit`.

python packages/audit.py                      # asks the package indexes, if they can be reached
python packages/audit.py advisory-database    # a folder with advisories in OSV format, such as a clone of
                                              # github.com/pypa/advisory-database or a list from osv.dev

What could not be checked is named with the reason, and is no failure.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "clients/typescript"
LOCKS = tuple(sorted(file.name for file in ROOT.glob("requirements/*.lock")))
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_NAME = re.compile(r"""["']?name["']?\s*:\s*["']?([@\w./-]+)""")
_FOUND = re.compile(r"Found \d+ known|\d+ (?:\w+ severity )?vulnerabilit")
_OUT_OF_REACH = re.compile(r"ConnectionError|Max retries|ENOTFOUND|ECONNREFUSED|endpoint returned|not be audited")

Locked = dict[tuple[str, str], set[str]]
"""The versions of each package, by the name of its index in OSV and its own."""


def locked() -> Locked:
    """All versions in the lock files."""
    found: Locked = {}
    for lock in LOCKS:
        for name, version in _PIN.findall((ROOT / "requirements" / lock).read_text(encoding="utf-8")):
            found.setdefault(("PyPI", canonicalize_name(name)), set()).add(version)
    for path, package in json.loads((CLIENT / "package-lock.json").read_text(encoding="utf-8"))["packages"].items():
        if path:
            name = package.get("name") or path.rpartition("node_modules/")[2]
            found.setdefault(("npm", name), set()).add(package["version"])
    return found


def advisories(folder: Path, packages: Locked) -> Iterator[str]:
    """A line for each locked version that an advisory in a folder is about."""
    names = {name for _, name in packages}
    for file in sorted(each for each in folder.rglob("*") if each.suffix in (".yaml", ".yml", ".json")):
        text = file.read_text(encoding="utf-8")
        if not {canonicalize_name(name) for name in _NAME.findall(text)} & {canonicalize_name(name) for name in names}:
            continue
        # JSON is YAML, and the parser of JSON is a hundred times as fast.
        advisory = json.loads(text) if file.suffix == ".json" else yaml.load(text, Loader=yaml.CSafeLoader)
        if not isinstance(advisory, dict) or advisory.get("withdrawn"):
            continue
        for affected in advisory.get("affected") or ():
            yield from _affected(advisory, affected, packages)


def _affected(advisory: Mapping[str, Any], affected: Mapping[str, Any], packages: Locked) -> Iterator[str]:
    index, name = affected["package"]["ecosystem"], affected["package"]["name"]
    name = canonicalize_name(name) if index == "PyPI" else name
    for version in sorted(packages.get((index, name), ())):
        if version in affected.get("versions", ()) or any(
            _within(version, each) for each in affected.get("ranges", ())
        ):
            yield f"{name} {version}: {advisory['id']} {advisory.get('summary', '')}".rstrip()


def _within(version: str, given: Mapping[str, Any]) -> bool:
    """Whether a range of an advisory has a version: its events say where it begins and where it ends."""
    if given["type"] == "GIT":
        return False
    inside = False
    for event in given["events"]:
        ((kind, limit),) = event.items()
        if kind == "introduced":
            inside = inside or limit == "0" or _ordered(version) >= _ordered(limit)
        elif kind == "fixed":
            inside = inside and _ordered(version) < _ordered(limit)
        elif kind == "last_affected":
            inside = inside and _ordered(version) <= _ordered(limit)
    return inside


def _ordered(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        # A candidate as npm writes it comes before its release, which is what matters here.
        return Version(f"{re.split('[-+]', version)[0]}.dev0")


def run(name: str, command: list[str], folder: Path = ROOT) -> bool:
    """Runs a check; whether it found nothing, or couldn't run."""
    program = shutil.which(command[0], path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if program is None:
        print(f"{name}: NOT CHECKED, because {command[0]} is not installed")
        return True
    done = subprocess.run([program, *command[1:]], cwd=folder, capture_output=True, text=True, check=False)
    printed = f"{done.stdout}\n{done.stderr}".strip()
    if _OUT_OF_REACH.search(printed) and not (done.returncode and _FOUND.search(printed)):
        print(f"{name}: NOT CHECKED, because the list of vulnerabilities can't be reached from here")
        return True
    print(f"{name}: {'FAILED' if done.returncode else 'ok'}")
    if done.returncode:
        print(printed)
    return done.returncode == 0


def main(arguments: list[str]) -> None:
    passed = [
        run("zizmor", ["zizmor", "--offline", "--no-progress", "--quiet", ".github"]),
        run("hadolint", ["hadolint", "Dockerfile"]),
        run("kube-linter", ["kube-linter", "lint", "--config", "deploy/kube-linter.yaml", "deploy/kubernetes"]),
    ]
    for folder in map(Path, arguments):
        packages = locked()
        found = list(advisories(folder, packages))
        print(f"{folder}: {'FAILED' if found else 'ok'}, {len(packages)} packages", *found, sep="\n  ")
        passed.append(not found)
    if not arguments:
        for lock in LOCKS:
            command = ["pip-audit", "--disable-pip", "--require-hashes", "-r", f"requirements/{lock}"]
            passed.append(run(f"pip-audit {lock}", command))
        passed.append(run("npm audit", ["npm", "audit"], CLIENT))
    raise SystemExit(0 if all(passed) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
