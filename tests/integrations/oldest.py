"""Prints the oldest versions that extras and requirements allow, as constraints for pip.

`python tests/integrations/oldest.py strands,mongodb 'openai>=2.54,<4'`
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def oldest(extras: str, *requirements: str) -> dict[str, str]:
    """Packages that requirements and extras, separated by commas, ask for, with the oldest version of each."""
    known = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    every = [*(requirement for extra in extras.split(",") for requirement in known[extra]), *requirements]
    return dict(re.findall(r"^([\w.-]+)(?:\[.*?\])?[>=]=([\w.]+)", "\n".join(every), re.MULTILINE))


if __name__ == "__main__":
    for package, version in oldest(*sys.argv[1:]).items():
        print(f"{package}=={version}")
