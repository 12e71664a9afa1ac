"""What is built and published comes from pinned sources, is listed, and is compared with advisories."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
LOCKS = {file.name: file.read_text(encoding="utf-8") for file in ROOT.glob("requirements/*.lock")}
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def module(name: str) -> ModuleType:
    """A script that is not part of the package."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, ROOT / f"packages/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def jobs(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    yield from workflow["jobs"].items()


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: str(file.stem))
def test_actions_are_pinned_by_hash_with_their_version(file: Path) -> None:
    lines = re.findall(r"uses: *(.+)", file.read_text(encoding="utf-8"))
    assert lines
    for line in lines:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_an_action_has_one_hash_and_version() -> None:
    used = {line for file in WORKFLOWS for line in re.findall(r"uses: *(.+)", file.read_text(encoding="utf-8"))}
    assert len(used) == len({line.partition("@")[0] for line in used})


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: str(file.stem))
def test_jobs_keep_no_credentials_and_run_no_text_of_others(file: Path) -> None:
    for name, job in jobs(file):
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, name
            # An expression is put into the script before the shell reads it.
            assert "${{" not in step.get("run", "").replace("${{ matrix.", ""), (name, step)
            assert_installs_are_pinned(step.get("run", ""))


def assert_installs_are_pinned(script: str) -> None:
    for line in script.splitlines():
        assert not re.search(r"\bnpm (?:install|i|add)\b|\bnpx\b|\bpipx\b|\buvx\b", line), line
        if re.search(r"\bpip3? (?:install|download|wheel)\b", line):
            assert "--require-hashes" in line or "--no-deps" in line, line
            # What is in this repository is built with what has a hash.
            assert "--require-hashes" in line or "--no-build-isolation" in line or "--no-index" in line, line


def test_only_trials_install_what_has_no_hash() -> None:
    for rule in re.split(r"\n(?=\S)", MAKEFILE):
        # Adapters and training data are tried with the newest packages, the plugin with Claude Code, in environments
        # of their own.
        if not rule.startswith(("test-integration-%", "installed =", "test-integration-claude-code", "test-training:")):
            assert_installs_are_pinned(rule)
    assert_installs_are_pinned(DOCKERFILE.replace("&&", "\n"))
    (release,) = (file for file in WORKFLOWS if file.stem == "release")
    tried = dict(jobs(release))["try"]
    assert tried["permissions"] == {"contents": "read"}
    # They are not installed where the packages are built, and nothing is published before they work.
    assert not any("dist.py try" in step.get("run", "") for step in dict(jobs(release))["build"]["steps"])
    assert all("try" in dict(jobs(release))[f"publish-{name}"]["needs"] for name in ("python", "npm", "image"))


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_a_hash(name: str) -> None:
    pins = re.findall(r"^[A-Za-z0-9._-]+==.*(?:\n    --hash=\S+.*)*", LOCKS[name], re.MULTILINE)
    assert len(pins) == len(PIN.findall(LOCKS[name])) > 0
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", pin) for pin in pins)


def test_what_builds_the_packages_is_locked() -> None:
    locked = dict(PIN.findall(LOCKS["build.lock"]))
    for project in (ROOT / "pyproject.toml", ROOT / "packages/heedful-minilm/pyproject.toml"):
        for requirement in tomllib.loads(project.read_text(encoding="utf-8"))["build-system"]["requires"]:
            name, exact = re.fullmatch(r"([\w-]+)(?:==|>=)(\S+)", requirement).groups()  # type: ignore[union-attr]
            assert name in locked
            assert "==" not in requirement or locked[name] == exact


def test_one_environment_can_have_all_that_builds_and_checks() -> None:
    versions: dict[str, set[str]] = {}
    for lock in ("build.lock", "core.lock", "dev.lock", "tools.lock"):
        pins = PIN.findall(LOCKS[lock])
        for name in {name for name, _ in pins}:
            versions.setdefault(name, set()).add(",".join(sorted(version for each, version in pins if each == name)))
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_lists_name_every_locked_package_with_its_licence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbom = module("sbom")
    monkeypatch.setattr(sbom, "OUT", tmp_path)
    sbom.main()
    for name, lock in sbom.PYTHON.items():
        made = orjson.loads((tmp_path / f"{name}.cdx.json").read_bytes())
        listed = {(each["name"], each["version"]) for each in made["components"]}
        assert listed - {("heedful-minilm", "1.0.0")} == {
            (pin.lower(), version) for pin, version in PIN.findall(LOCKS[lock])
        }
        # Packages for other platforms are not installed here, so their licence isn't known.
        licensed = [each for each in made["components"] if each.get("licenses")]
        assert len(licensed) >= len(listed) - 5
        assert all(each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}" for each in made["components"])
    made = orjson.loads((tmp_path / "heedful-npm.cdx.json").read_bytes())
    packages = orjson.loads((ROOT / "clients/typescript/package-lock.json").read_bytes())["packages"]
    versions = {each["version"] for path, each in packages.items() if path}
    assert {each["version"] for each in made["components"]} == versions
    assert all(each["licenses"] and each["hashes"] for each in made["components"])
    # The client brings nothing along.
    assert {each["scope"] for each in made["components"]} == {"excluded"}


def test_the_same_locks_give_the_same_list() -> None:
    sbom = module("sbom")
    made = [sbom.document("x", "1", list(sbom.python_components(LOCKS["core.lock"]))) for _ in range(2)]
    assert made[0] == made[1]


ADVISORY = """
id: PYSEC-1
summary: It does too much.
affected:
- package: {{ecosystem: PyPI, name: Some_Package}}
  ranges:
  - type: ECOSYSTEM
    events: {events}
  versions: {versions}
"""


@pytest.mark.parametrize(
    ("events", "versions", "found"),
    [
        ("[{introduced: '0'}, {fixed: '2.1'}]", "[]", True),
        ("[{introduced: '0'}, {fixed: '2.0.1'}]", "[]", True),
        ("[{introduced: '0'}, {fixed: '2.0'}]", "[]", False),
        ("[{introduced: '0'}, {last_affected: '2.0'}]", "[]", True),
        ("[{introduced: '0'}, {last_affected: '1.9'}]", "[]", False),
        ("[{introduced: '2.1'}]", "[]", False),
        ("[{introduced: '1.0'}, {fixed: '1.5'}, {introduced: '1.9'}, {fixed: '2.2'}]", "[]", True),
        ("[{introduced: '0'}, {fixed: '1.0'}]", "['2.0']", True),
    ],
)
def test_advisories_are_compared_with_locked_versions(tmp_path: Path, events: str, versions: str, found: bool) -> None:
    (tmp_path / "vulns").mkdir()
    (tmp_path / "vulns/PYSEC-1.yaml").write_text(ADVISORY.format(events=events, versions=versions))
    lines = list(module("audit").advisories(tmp_path, {("PyPI", "some-package"): {"2.0"}}))
    assert lines == (["some-package 2.0: PYSEC-1 It does too much."] if found else [])


def test_an_advisory_of_npm_is_read_and_a_withdrawn_one_is_not(tmp_path: Path) -> None:
    package = {"ecosystem": "npm", "name": "@scope/x"}
    ranges = [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "1.0.0-rc.2"}]}]
    advisory = {"id": "GHSA-1", "affected": [{"package": package, "ranges": ranges}]}
    (tmp_path / "a.json").write_bytes(orjson.dumps(advisory))
    (tmp_path / "b.json").write_bytes(orjson.dumps({**advisory, "id": "GHSA-2", "withdrawn": "2026-01-01T00:00:00Z"}))
    assert list(module("audit").advisories(tmp_path, {("npm", "@scope/x"): {"0.9.0", "1.0.0"}})) == [
        "@scope/x 0.9.0: GHSA-1"
    ]


def test_what_is_locked_is_what_is_audited() -> None:
    locked = module("audit").locked()
    assert ("PyPI", "sqlalchemy") in locked
    assert ("npm", "typescript") in locked


def test_what_could_not_be_checked_is_said_and_what_was_found_fails(capsys: pytest.CaptureFixture[str]) -> None:
    run = module("audit").run
    assert run("a", ["no-such-program"])
    assert run("b", ["sh", "-c", "echo could not be audited"])
    assert not run("c", ["sh", "-c", "echo 'Found 1 known vulnerability; x could not be audited'; exit 1"])
    assert not run("d", ["sh", "-c", "echo something else; exit 1"])
    assert run("e", ["true"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a: NOT CHECKED, because no-such-program is not installed"
    assert lines[1] == "b: NOT CHECKED, because the list of vulnerabilities can't be reached from here"
    assert "c: FAILED" in lines
    assert "d: FAILED" in lines
    assert lines[-1] == "e: ok"


def test_targets_that_the_workflows_run_exist() -> None:
    scripts = [step.get("run", "") for file in WORKFLOWS for _, job in jobs(file) for step in job["steps"]]
    for target in {target for script in scripts for target in re.findall(r"\bmake ([a-z-]+)(?=\s|$)", script)}:
        assert subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=False).returncode == 0
