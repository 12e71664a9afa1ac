"""Would the tests notice? Changes one place of the code at a time, and runs the tests that execute it.

`python tests/mutants/sample.py [--count 60] [--seed 1]`: a sample of operators and comparisons of ledger, guard, reuse
and storage is swapped, each in a copy of the code. A change that makes no test fail survives, and is shown.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "ledger",
    "sql/guard.py",
    "sql/reuse",
    "storage/facts.py",
    "storage/filters.py",
    "storage/graph.py",
    "storage/rows.py",
    "storage/scopes.py",
    "storage/vectors.py",
    "storage/isolation.py",
    "storage/external_ids.py",
    "storage/call_results.py",
)
SUBJECTS = (
    *("unit/test_*", "security/test_guard*", "security/test_feedback_trust*", "test_adaptive*", "test_answers_after*"),
    *("test_authors*", "test_cache*", "test_chat*", "test_entry_feedback*", "test_erasure*", "test_execution*"),
    *("test_exp[il]*", "test_external_ids*", "test_fact_history*", "test_fold_properties*", "test_forget*", "test_g*"),
    *("test_improve*", "test_isolation*", "test_loop*", "test_opinion_properties*", "test_rec*", "test_related*"),
    *("test_rem*", "test_replay*", "test_retract*", "test_satisfaction*", "test_session_feedback*", "test_signal*"),
    *("test_sta*", "test_strengths*", "test_supersede*", "test_tallies*", "test_where*"),
)
"""The tests of these parts; those of servers, pages and commands would take longer and notice little more."""
SHARE = 0.9
"""The share of the sample that the tests have to notice."""
MOST = 400
"""Tests that are run for one mutant, those of the fewest lines' worth first."""
PATIENCE = 600
"""Seconds after which a mutant that doesn't come to an end counts as noticed."""

SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One operator of a file, and what takes its place."""

    file: Path
    line: int
    start: int
    stop: int
    new: str

    @property
    def name(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"

    def text(self) -> str:
        """The file with the change."""
        text = self.file.read_bytes()
        return (text[: self.start] + self.new.encode() + text[self.stop :]).decode()

    def shown(self) -> str:
        """The line as it is after the change."""
        return self.text().splitlines()[self.line - 1].strip()


def mutants(file: Path) -> Iterator[Mutant]:
    """All places of a file that can be swapped."""
    content = file.read_bytes()
    starts = [0]
    for text in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    for node in ast.walk(ast.parse(content)):
        for operator, before, after in _operands(node):
            if type(operator) not in SWAPS:
                continue
            old, new = SWAPS[type(operator)]
            first = starts[(before.end_lineno or 1) - 1] + (before.end_col_offset or 0)
            last = starts[after.lineno - 1] + after.col_offset
            # Brackets and comments may stand between; the operator is there once, or the place is left out.
            pattern = rb"(?<![\w=<>!])" + rb"\s+".join(map(re.escape, old.encode().split())) + rb"(?![\w=])"
            found = list(re.finditer(pattern, content[first:last]))
            if len(found) == 1:
                start = first + found[0].start()
                line = content.count(b"\n", 0, start) + 1
                yield Mutant(file, line, start, first + found[0].end(), new)


def _operands(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """The operators of an expression, each between two operands."""
    if isinstance(node, ast.Compare):
        yield from zip(node.ops, [node.left, *node.comparators], node.comparators, strict=False)
    elif isinstance(node, ast.BoolOp):
        yield from ((node.op, one, other) for one, other in zip(node.values, node.values[1:], strict=False))
    elif isinstance(node, ast.BinOp):
        yield node.op, node.left, node.right


def executing(data: CoverageData, mutant: Mutant) -> list[str]:
    """The tests that execute the line of a mutant; the quickest first."""
    contexts = data.contexts_by_lineno(str(mutant.file)).get(mutant.line, [])
    found = {context.partition("|")[0] for context in contexts if context}
    return sorted(found, key=lambda test: (not test.startswith("tests/unit"), test))[:MOST]


def survives(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Whether all these tests pass in spite of the change."""
    if not tests:
        return True
    with tempfile.TemporaryDirectory(prefix="heedful-mutant-") as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / mutant.file.relative_to(ROOT)).write_text(mutant.text())
        (folder / "tests").write_text("\n".join(tests))
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", f"@{folder}/tests"]
        try:
            return (
                subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE).returncode
                == 0
            )
        except subprocess.TimeoutExpired:
            return False


def covered(file: Path) -> CoverageData:
    """Which tests execute which lines, in a file of coverage's; made if it isn't there."""
    if not file.is_file():
        command = [sys.executable, "-m", "pytest", "--dist", "worksteal", "-n", str(os.cpu_count() or 1)]
        options = ["--cov=src/heedful", "--cov-context=test", "--cov-report="]
        environment = {**os.environ, "COVERAGE_FILE": str(file)}
        tests = [str(path) for subject in SUBJECTS for path in sorted((ROOT / "tests").glob(f"{subject}.py"))]
        subprocess.run([*command, *options, *tests], cwd=ROOT, env=environment, check=True)
    data = CoverageData(str(file))
    data.read()
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="how many mutants (60)")
    parser.add_argument("--seed", type=int, default=1, help="which sample (1)")
    parser.add_argument("--coverage", type=Path, default=ROOT / ".venv" / "mutants.coverage", help="kept between runs")
    options = parser.parse_args()
    files = [file for part in CODE for file in _files(ROOT / "src/heedful" / part)]
    every = [mutant for file in files for mutant in mutants(file)]
    sample = random.Random(options.seed).sample(every, min(options.count, len(every)))
    data = covered(options.coverage)
    print(f"{len(sample)} of {len(every)} places of {len(files)} files", flush=True)
    alive = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tests = [executing(data, mutant) for mutant in sample]
        for mutant, lives in zip(sample, pool.map(partial(survives), sample, tests), strict=True):
            print(f"{'ALIVE ' if lives else 'killed'}  {mutant.name}  {mutant.shown()}", flush=True)
            alive += [mutant] if lives else []
    share = 1 - len(alive) / len(sample)
    print(f"{len(sample) - len(alive)} of {len(sample)} noticed ({share:.0%}; at least {SHARE:.0%})")
    sys.exit(share < SHARE)


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.py")) if path.is_dir() else [path]


if __name__ == "__main__":
    main()
