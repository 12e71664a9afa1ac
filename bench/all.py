"""All benchmarks, one after another: `python -m bench.all [--only NAME …] [--short | --quick]`, or `make bench-all`.

Each waits until the machine is quiet, leaves its figures in `bench/results` with the commit, the date and how quiet it
was, and docs/benchmarks.md is written from them. `--short` leaves out what takes longest: the million facts of speed,
and most of the ten minutes of the server. With `--quick`, figures and page go to `bench/out/quick`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench import page, plan
from bench.measure import machine, say
from bench.plan import BENCHMARKS, Benchmark
from bench.quiet import Clock, wait
from bench.records import RESULTS, ROOT, Machine, Record, all_records
from heedful.version import __version__


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.all", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--short", action="store_const", const="short", dest="length", help="without what takes longest"
    )
    length.add_argument(
        "--quick", action="store_const", const="quick", dest="length", help="little of everything, into bench/out/quick"
    )
    parser.set_defaults(length="whole")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds to wait for a quiet machine (600)")
    options = parser.parse_args(arguments)
    quick = options.length == "quick"
    if not quick and (changed := _git("status", "--porcelain")):
        sys.exit(f"Figures belong to a commit, and these files differ from the last one:\n{changed}")
    out = ROOT / "bench" / "out"
    results = out / "quick" / "results" if quick else RESULTS
    patience = 0.0 if quick else options.patience
    failed = []
    for name in options.only or BENCHMARKS:
        began = time.monotonic()
        try:
            for record in _run(BENCHMARKS[name], out / "quick" if quick else out, options.length, patience):
                record.save(results)
        except (OSError, RuntimeError, KeyError, subprocess.CalledProcessError) as error:
            failed.append(f"{name}: {error}")
        say(f"{name} took {(time.monotonic() - began) / 60:.1f} minutes")
        _write(results, out / "quick" / "benchmarks.md" if quick else None)
    if failed:
        sys.exit("Without new figures, because they failed:\n" + "\n".join(failed))


def _run(benchmark: Benchmark, out: Path, length: plan.Length, patience: float) -> list[Record]:
    """Runs a benchmark on a quiet machine, and returns its records."""
    commit, version = _git("rev-parse", "HEAD"), __version__
    for part in benchmark.parts:
        for file in out.glob(part.files):
            file.unlink()
    before, waited = wait(patience, 1.0 if length == "quick" else 10.0)
    say(f"{benchmark.target}: {before.busy:.0%} busy, {before.stolen:.1%} stolen, waited {waited:.0f} s")
    clock = Clock.read()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    subprocess.run(benchmark.command(sys.executable, out, length), cwd=ROOT, env=environment, check=True)
    where = Machine(machine(), before, Clock.read().since(clock).stolen, round(waited))
    made = []
    for part in benchmark.parts:
        reports = plan.reports(part, out)
        if not reports:
            raise RuntimeError(f"it wrote no {part.files}; is HEEDFUL_BENCH_DATA set?")
        tables, aims = part.taken(reports)
        made.append(
            Record(
                part.name,
                f"make {benchmark.target}",
                version,
                commit,
                f"{datetime.now(UTC):%Y-%m-%d}",
                where,
                aims=aims,
                tables=tables,
                figures=part.figures(reports),
            )
        )
    return made


def _write(results: Path, trial: Path | None) -> None:
    """The page, from all records; a trial's go before those that are there, into a page of their own."""
    if trial is None:
        page.write(all_records())
    else:
        trial.parent.mkdir(parents=True, exist_ok=True)
        trial.write_text(page.filled(page.PAGE, {**all_records(), **all_records(results)}), encoding="utf-8")
        say(f"page written to {trial}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
