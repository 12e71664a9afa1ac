"""What is published: metadata, the version of a tag, and the notes of a release."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import heedful

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = "https://forge.example.com/heedful/heedful"


def module(path: str) -> ModuleType:
    """A file that is not part of the package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize(
    ("tag", "python", "npm"),
    [("v0.2.0", "0.2.0", "0.2.0"), ("0.2.0", "0.2.0", "0.2.0"), ("v1.0.0rc2", "1.0.0rc2", "1.0.0-rc.2")],
)
def test_a_tag_sets_the_version_of_both_packages(tmp_path: Path, tag: str, python: str, npm: str) -> None:
    release = module("packages/release.py")
    for name in (release.VERSION_FILE, *release.NPM_FILES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert release.write_version(tmp_path, tag) == python
    assert f'"{python}"' in (tmp_path / release.VERSION_FILE).read_text()
    for name in release.NPM_FILES:
        assert json.loads((tmp_path / name).read_text())["version"] == npm


def test_both_packages_have_one_version() -> None:
    python, npm = module("packages/release.py").versions(heedful.__version__)
    assert heedful.__version__ == python
    assert json.loads((ROOT / "clients/typescript/package.json").read_text())["version"] == npm


def test_notes_are_the_section_of_the_changelog() -> None:
    notes = module("packages/release.py").notes
    newest = "## Unreleased\n\n- new\n\n## 0.2.0 (2026-12-01)\n\n- this\n\n### More\n\n- that\n\n"
    changelog = f"# Changelog\n\n{newest}## 0.1.0\n\n- old\n"
    assert notes(changelog, "0.2.0") == "- this\n\n### More\n\n- that\n"
    assert notes(changelog, "0.2.0rc1") == notes(changelog, "0.2.0")
    with pytest.raises(SystemExit, match=r"no section '## 0\.3\.0';"):
        notes(changelog, "0.3.0rc1")


def test_links_of_the_readme_lead_somewhere_from_a_package_index() -> None:
    whole = module("hatch_build.py").whole_links
    page = "![a](docs/a.png) [b](docs/b.md#c) [d](#e) [f](https://example.com/)"
    assert whole(page, REPOSITORY, "v0.2.0") == (
        f"![a]({REPOSITORY}/raw/v0.2.0/docs/a.png) [b]({REPOSITORY}/blob/v0.2.0/docs/b.md#c) [d](#e) [f](https://example.com/)"
    )


def test_a_package_index_can_show_the_readme() -> None:
    page = module("hatch_build.py").whole_links((ROOT / "README.md").read_text(encoding="utf-8"), REPOSITORY, "v0.2.0")
    # It gives headings no anchors, and pictures that HTML names would stay relative.
    assert set(re.findall(r"\]\((?!https://)([^)\s]*)", page)) == set()
    assert "<img" not in page
    assert f"]({REPOSITORY}/raw/v0.2.0/docs/images/loop.svg)" in page


def test_the_extra_all_has_everything_for_users_but_the_frameworks_of_adapters() -> None:
    extras = PROJECT["optional-dependencies"]
    (every,) = extras["all"]
    adapters = {file.stem.replace("_", "-") for file in ROOT.glob("src/heedful/integrations/*.py")}
    assert every.removeprefix("heedful[").removesuffix("]").split(",") == sorted(
        extras.keys() - {"all", "bench", "dev"} - adapters
    )
