"""What a release takes from the repository: its version from the tag, and its notes from the changelog.

python packages/release.py version v0.2.0    # writes the version of the tag into both packages
python packages/release.py notes 0.2.0       # prints the section of the changelog
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = "src/heedful/version.py"
NPM_FILES = (
    "clients/typescript/package.json",
    "clients/typescript/package-lock.json",
    "plugins/claude-code/.claude-plugin/plugin.json",
)
# As PEP 440 writes a release and a candidate, so that both registries accept it or can be given its like.
_TAG = re.compile(r"v?(\d+\.\d+\.\d+)(?:(a|b|rc)(\d+))?")
_NPM_STAGE = {"a": "alpha", "b": "beta", "rc": "rc"}
_NPM_VERSION = re.compile(r'("name": "heedful",\s*"version": ")[^"]+(")')


def versions(tag: str) -> tuple[str, str]:
    """The version that a tag names, for Python and for npm.

    >>> versions("v0.2.0"), versions("v0.2.0rc1")
    (('0.2.0', '0.2.0'), ('0.2.0rc1', '0.2.0-rc.1'))
    """
    found = _TAG.fullmatch(tag)
    if found is None:
        raise SystemExit(f"{tag} names no version; use v0.2.0 or v0.2.0rc1")
    release, stage, number = found.groups()
    if stage is None:
        return release, release
    return f"{release}{stage}{number}", f"{release}-{_NPM_STAGE[stage]}.{number}"


def write_version(root: Path, tag: str) -> str:
    """Writes the version of a tag into the packages; returns it."""
    version, npm_version = versions(tag)
    file = root / VERSION_FILE
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r'(__version__ = ")[^"]+(")', rf"\g<1>{version}\g<2>", text), encoding="utf-8")
    for name in NPM_FILES:
        file = root / name
        text = file.read_text(encoding="utf-8")
        file.write_text(_NPM_VERSION.sub(rf"\g<1>{npm_version}\g<2>", text), encoding="utf-8")
    return version


def notes(changelog: str, version: str) -> str:
    """The section of the changelog about a version; a candidate has that of the release it leads to."""
    wanted = re.match(r"[\d.]+", version)
    release = wanted[0] if wanted else version
    heading = rf"^## {re.escape(release)}\b[^\n]*"
    found = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise SystemExit(f"CHANGELOG.md has no section '## {release}'; rename 'Unreleased' to it")
    return found[1].strip() + "\n"


def main(arguments: list[str]) -> None:
    match arguments:
        case ["version", tag]:
            print(write_version(ROOT, tag))
        case ["notes", version]:
            sys.stdout.write(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
