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
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
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
    *(
        "test_improve*",
        "test_insight*",
        "test_isolation*",
        "test_loop*",
        "test_opinion_properties*",
        "test_rec*",
        "test_related*",
    ),
    *("test_rem*", "test_replay*", "test_retract*", "test_satisfaction*", "test_session_feedback*", "test_signal*"),
    *("test_sta*", "test_strengths*", "test_supersede*", "test_tallies*", "test_where*"),
)
"""The tests of these parts; those of servers, pages and commands would take longer and notice little more."""
SHARE = 0.9
"""The share of the sample that the tests have to notice."""
MOST = 400
"""Tests that are run for one mutant."""
FIRST = 40
"""Those of them that are run first, by themselves: to collect all takes longer than it mostly takes to notice."""
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
    uses: tuple[int, ...]
    """Where the file uses the constant whose value this is a part of."""

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
    tree = ast.parse(content)
    uses = {
        id(node): lines for statement in tree.body if (lines := _uses(tree, statement)) for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
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
                yield Mutant(file, line, start, first + found[0].end(), new, uses.get(id(node), ()))


def _uses(tree: ast.Module, statement: ast.stmt) -> tuple[int, ...]:
    """The lines that use the names which a statement gives to values."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return ()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return tuple(sorted({node.lineno for node in found if node.id in names}))


def _operands(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """The operators of an expression, each between two operands."""
    if isinstance(node, ast.Compare):
        yield from zip(node.ops, [node.left, *node.comparators], node.comparators, strict=False)
    elif isinstance(node, ast.BoolOp):
        yield from ((node.op, one, other) for one, other in zip(node.values, node.values[1:], strict=False))
    elif isinstance(node, ast.BinOp):
        yield node.op, node.left, node.right


def executing(data: CoverageData, sizes: Counter[str], mutant: Mutant) -> list[str]:
    """The tests that execute the line of a mutant, or use its constant. Those that execute little come first: they are
    quick, and about this line.

    Where they are few, those that execute the file follow: a line may be executed when its file is loaded, and an
    expression of several lines counts as one of them."""
    contexts = data.contexts_by_lineno(str(mutant.file))
    lines = (contexts.get(line, []) for line in (mutant.line, *mutant.uses))
    found = set(map(_test, chain(*lines))) - {""}
    others = set(map(_test, chain(*contexts.values()))) - {""} if len(found) < FIRST else set()
    return sorted(found | others, key=lambda test: (test not in found, sizes[test], test))[:MOST]


def lines_of_tests(data: CoverageData, files: Sequence[Path]) -> Counter[str]:
    """How many lines of these files each test executes."""
    lines = (contexts for file in files for contexts in data.contexts_by_lineno(str(file)).values())
    return Counter(test for contexts in lines for test in set(map(_test, contexts)))


def _test(context: str) -> str:
    return context.partition("|")[0]


def noticed(mutant: Mutant, tests: Sequence[str]) -> str | None:
    """The test that notices the change, if one does."""
    with tempfile.TemporaryDirectory(prefix="heedful-mutant-") as name:
        folder = Path(name)
        # With what is compiled already: only the changed file is newer than that.
        shutil.copytree(ROOT / "src", folder / "src")
        (folder / mutant.file.relative_to(ROOT)).write_text(mutant.text())
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", f"@{folder}/tests"]
        for some in filter(None, (tests[:FIRST], tests[FIRST:])):
            (folder / "tests").write_text("\n".join(some))
            try:
                done = subprocess.run(
                    command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
                )
            except subprocess.TimeoutExpired:
                return f"nothing ended within {PATIENCE} s"
            if done.returncode:
                failed = re.search(r"^(?:FAILED|ERROR) .*", done.stdout, re.MULTILINE)
                return failed.group() if failed else f"pytest ended with {done.returncode}"
    return None


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
    alive = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sizes = lines_of_tests(data, files)
        tests = [executing(data, sizes, mutant) for mutant in sample]
        for mutant, by in zip(sample, pool.map(noticed, sample, tests), strict=True):
            print(
                f"{'killed' if by else 'ALIVE '}  {mutant.name}  {mutant.shown()}",
                f"    {by}"[:200],
                sep="\n",
                flush=True,
            )
            alive += by is None
    share = 1 - alive / len(sample)
    print(f"{len(sample) - alive} of {len(sample)} noticed ({share:.0%}; at least {SHARE:.0%})")
    sys.exit(share < SHARE)


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.py")) if path.is_dir() else [path]


if __name__ == "__main__":
    main()
