"""Which extras for agent frameworks can be installed together, as a resolver says.

`python -m docs.fits` writes the table of docs/integrations/README.md; it needs `uv` and a package index.
"""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

from tests.integrations.oldest import oldest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/integrations/README.md"
EXTRAS = {
    "ag-ui": "ag-ui-protocol",
    "agent-framework": "agent-framework-core",
    "crewai": "crewai",
    "google-adk": "google-adk",
    "langchain": "langchain",
    "litellm": "litellm",
    "llama-index": "llama-index-core",
    "openai-agents": "openai-agents",
    "pydantic-ai": "pydantic-ai-slim",
    "strands": "strands-agents",
    "vanna": "vanna",
    "mcp": "mcp",
}
"""Extras, and the package of each whose versions are shown."""
BEGIN, END = "<!-- fits: begin -->\n", "<!-- fits: end -->\n"


def resolve(*extras: str) -> dict[str, str] | None:
    """The versions that are chosen for extras; None if nothing fits."""
    options = [option for extra in (*extras, "server") for option in ("--extra", extra)]
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    done = subprocess.run([*command, "pyproject.toml", *options], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    return dict(re.findall(r"^([\w.-]+)(?:\[.*\])?==(\S+)", done.stdout, re.MULTILINE))


def named(extra: str) -> str:
    """The first cells of the row of an extra: its name, its package and the oldest version it allows."""
    package = EXTRAS[extra]
    return f"`{extra}` | {package} | {oldest(extra)[package]}"


def table() -> str:
    """The table, as Markdown."""
    alone = {extra: resolve(extra) for extra in EXTRAS}
    together = {pair: resolve(*pair) is not None for pair in combinations(EXTRAS, 2)}
    lines = ["| extra | package | oldest | newest | does not fit with |", "| --- | --- | --- | --- | --- |"]
    for extra, package in EXTRAS.items():
        found = alone[extra]
        newest = "none that fits" if found is None else found[package]
        others = [
            f"`{other}`"
            for pair, fits in together.items()
            if extra in pair and not fits
            for other in pair
            if other != extra
        ]
        lines.append(f"| {named(extra)} | {newest} | {', '.join(others) or 'all fit'} |")
    everything = (
        "All of them fit into one environment." if resolve(*EXTRAS) else "Not all of them fit into one environment."
    )
    return "\n".join([*lines, "", everything, ""])


def main() -> None:
    """Writes the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
