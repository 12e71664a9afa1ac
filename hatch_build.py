"""Adds what depends on where the repository is published: its addresses, and whole links in the README.

`HEEDFUL_REPOSITORY` names it, as `https://host/owner/name`; the release sets it. Without it, the package has no
addresses, and the README its relative links.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "HEEDFUL_REPOSITORY"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def urls(repository: str) -> dict[str, str]:
    """The addresses that a package index shows."""
    return {
        "Repository": repository,
        "Documentation": f"{repository}/tree/main/docs",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def whole_links(text: str, repository: str, revision: str) -> str:
    """A page whose relative links and pictures lead to the repository, so that it can be read elsewhere."""

    def whole(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({repository}/{kind}/{revision}/{found[3]})"

    return _LINK.sub(whole, text)


class CustomMetadataHook(MetadataHookInterface):
    """Called by hatchling when it needs the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get(VARIABLE, "").rstrip("/")
        if repository:
            metadata["urls"] = urls(repository)
            text = whole_links(text, repository, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
