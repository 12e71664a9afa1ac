"""Prints the lines of each wing, and fails if the whole is above its budget: `python -m docs.size`, or `make size`."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/heedful"


def main() -> int:
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        folder, *rest = path.relative_to(SOURCE).parts
        wing = f"{folder}/" if rest else "(modules of their own)"
        modules[wing] += 1
        lines[wing] += len(path.read_text().splitlines())
    for wing, count in lines.most_common():
        print(f"{count:7,} lines {modules[wing]:4} modules  {wing}")
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["heedful"]["max_lines"]
    print(f"{lines.total():7,} lines {modules.total():4} modules  of at most {budget:,} lines")
    if lines.total() > budget:
        print("src has outgrown its budget (max_lines in pyproject.toml): remove what is not needed.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
