"""Lists what the packages, the image and the client for TypeScript consist of, in CycloneDX: `make sbom`.

Versions and hashes come from the lock files, licences from what is installed and from npm's lock file.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build/sbom"
PYTHON = {"heedful-python": "core.lock", "heedful-image": "image.lock"}
"""Lists, and the lock files that they are made from."""

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:.*\\\n)*.*)$", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_CLASSIFIER = "License :: OSI Approved :: "

Component = dict[str, Any]


def python_components(lock: str) -> Iterator[Component]:
    """The packages of a lock file, and the model, which is built from this repository and so has no pin."""
    for pin in _PIN.finditer(lock):
        name, version = pin["name"].lower(), pin["version"]
        yield _component(name, version, f"pkg:pypi/{name}@{version}", _licence(name), _HASH.findall(pin["rest"]))
    project = (ROOT / "packages/heedful-minilm/pyproject.toml").read_text(encoding="utf-8")
    version = re.findall(r'^version = "(.+)"$', project, re.MULTILINE)[0]
    yield _component("heedful-minilm", version, f"pkg:pypi/heedful-minilm@{version}", "Apache-2.0")


def npm_components(lock: str) -> Iterator[Component]:
    """The packages of npm's lock file; those that only builds and tests need are marked as not included."""
    for path, package in json.loads(lock)["packages"].items():
        if not path:
            continue
        name = package.get("name") or path.rpartition("node_modules/")[2]
        component = _component(
            name, package["version"], f"pkg:npm/{quote(name, safe='/')}@{package['version']}", package.get("license")
        )
        algorithm, _, digest = package["integrity"].partition("-")
        content = base64.b64decode(digest).hex()
        component["hashes"] = [{"alg": algorithm.upper().replace("SHA", "SHA-"), "content": content}]
        if package.get("dev"):
            component["scope"] = "excluded"
        yield component


def document(name: str, version: str, components: list[Component]) -> dict[str, Any]:
    """A list in CycloneDX's format; the same for the same content."""
    listed = sorted({each["bom-ref"]: each for each in components}.values(), key=lambda each: str(each["bom-ref"]))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([name, version, listed]))}",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": name, "name": name, "version": version}},
        "components": listed,
    }


def _component(name: str, version: str, purl: str, licence: str | None, hashes: list[str] | None = None) -> Component:
    made: Component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if licence:
        made["licenses"] = [{"license": {"name": licence}}]
    if len(hashes or []) == 1:
        made["hashes"] = [{"alg": "SHA-256", "content": (hashes or [])[0]}]
    elif hashes:
        # One file for each platform: CycloneDX has one hash of each kind for a component.
        made["properties"] = [{"name": "heedful:sha256", "value": each} for each in hashes]
    return made


def _licence(name: str) -> str | None:
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return None
    # Older packages have a whole text where newer ones have an expression.
    stated = str(*(about.get_all("License-Expression") or about.get_all("License") or ())[:1])
    if stated and "\n" not in stated and len(stated) <= 100:
        return stated
    named = [each.removeprefix(_CLASSIFIER) for each in about.get_all("Classifier") or () if _CLASSIFIER in each]
    return " AND ".join(named) or None


def main() -> None:
    version = re.findall(r'__version__ = "(.+)"', (ROOT / "src/heedful/version.py").read_text(encoding="utf-8"))[0]
    lists = {name: list(python_components((ROOT / "requirements" / lock).read_text())) for name, lock in PYTHON.items()}
    lists["heedful-npm"] = list(npm_components((ROOT / "clients/typescript/package-lock.json").read_text()))
    OUT.mkdir(parents=True, exist_ok=True)
    for name, components in lists.items():
        made = document(name, version, components)
        (OUT / f"{name}.cdx.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
        unknown = [each["name"] for each in made["components"] if "licenses" not in each]
        print(f"{name}.cdx.json: {len(made['components'])} packages", end="")
        print(f", without a known licence: {', '.join(unknown)}" if unknown else "")


if __name__ == "__main__":
    main()
