"""Every benchmark: how it is started, what it writes, and which of that is shown on the page, in which record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.records import Aim, Table, aim_of

Length = Literal["whole", "short", "quick"]

Content = dict[str, Any]
"""A report's file."""


@dataclass(frozen=True, slots=True)
class Part:
    """A record that a run leaves: which sections and bars of its reports belong to it."""

    name: str
    files: str
    """The reports that it is taken from, as a pattern of their files."""
    tables: str = ""
    """Titles that are shown, as a pattern of their beginnings; all if empty."""
    more: str = "(?!)"
    """Titles that are only kept in the record."""
    aims: str = ""
    notes: bool = True
    """Whether the notes below its tables are shown."""
    figures: Callable[[Sequence[Content]], dict[str, Any]] = lambda reports: {}
    """What the head of the page, the README and the pictures need of it."""

    def taken(self, reports: Sequence[Content]) -> tuple[list[Table], list[Aim]]:
        """Its tables and aims. Where a benchmark writes several reports, the title of each goes before its own."""
        several = len(reports) > 1
        tables, aims = [], []
        for report in reports:
            of = f"{report['title'].partition(': ')[2] or report['title']}: " if several else ""
            for each in report["sections"]:
                more = bool(re.match(self.more, each["title"]))
                if more or re.match(self.tables, each["title"]):
                    notes = each["notes"] if self.notes else []
                    tables.append(Table(of + each["title"], each["columns"], each["rows"], notes, more))
            for bar in report["bars"]:
                if re.match(self.aims, bar["name"]):
                    aims.append(aim_of({**bar, "name": of + bar["name"]}))
        return tables, aims


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A module of this package, and the records that its reports become."""

    target: str
    """What comes after `make`."""
    module: str
    parts: tuple[Part, ...]
    quick: tuple[str, ...] = ("--quick",)
    """Arguments to see that it runs."""
    short: tuple[str, ...] = ()
    """Arguments to leave out what takes longest."""

    def command(self, python: str, out: Path, length: Length) -> list[str]:
        more = {"whole": (), "short": self.short, "quick": self.quick}[length]
        return [python, "-m", f"bench.{self.module}", "--out", str(out), *more]


DOCUMENTED = ("documented, w = .1", "documented, w = .3", "documented, w = .5")


def _speed(reports: Sequence[Content]) -> dict[str, Any]:
    found = reports[0]["figures"]
    whole, embedding = found["recall"]["hybrid"]["whole"]["p50"], found["embedding"]["p50"]
    return {
        "facts": found["facts"],
        "times": whole / embedding,
        "milliseconds": whole,
        "embedding": embedding,
        "sizes": [[each["facts"], each["time"]["p50"]] for each in found["sizes"]],
    }


def _recall(reports: Sequence[Content]) -> dict[str, Any]:
    found = reports[0]["figures"]
    return {
        "tuned": {
            "hybrid": found["heedful: hybrid"]["all"],
            "fusion": found["baseline: reciprocal-rank fusion of both"]["all"],
            "words": found["baseline: BM25"]["all"],
            "vectors": found["baseline: vector"]["all"],
        }
    }


WORLDS = {"covid": "COVID-Q", "clinc": "CLINC150", "locomo": "LoCoMo", "": "the shop"}
"""The worlds of learning, by how the names of their files begin."""


def _learning(reports: Sequence[Content]) -> dict[str, Any]:
    """By kind of ratings, world and rule: the change for other phrasings and for needs that nobody rated."""
    made: dict[str, Any] = {}
    for report in reports:
        file = report["title"].partition(": ")[2].lower()
        world = next(name for start, name in WORLDS.items() if file.startswith(start))
        for arm, conditions in report["figures"]["mrr"].items():
            for condition in ("explicit, exact", "explicit, 30% noise"):
                if condition in conditions and arm in ("adaptive", *DOCUMENTED):
                    changes = [round(conditions[condition][part]["change"], 1) for part in ("held out", "unrated")]
                    made.setdefault(condition, {}).setdefault(world, {})[arm] = changes
    return made


def _reuse(reports: Sequence[Content]) -> dict[str, Any]:
    found = reports[0]["figures"]["all"]
    return {
        "geography": {"asked": found["gates"]["questions"], **_shares(found["gates"])},
        "geography by cosine": _shares(found["cosine ≥ 0.80"]),
    }


def _sets(reports: Sequence[Content]) -> dict[str, Any]:
    """The shares of each set when all of it is proven, and by a cosine of 0.80."""
    result: dict[str, Any] = {}
    for name in ("scholar", "advising"):
        for key, own in reports[0]["figures"].items():
            if re.fullmatch(rf"{name}, \d+ proven", key):
                # The last is that of all that are proven.
                result[name] = {"asked": own["asked"], **_shares(own)}
        for section in reports[0]["sections"]:
            for row in section["rows"]:
                if row[0] == f"{name}, cosine ≥ 0.80":
                    place = section["columns"].index("reused")
                    reused, wrong = (float(row[place + shift].rstrip("%")) for shift in (0, 1))
                    result[f"{name} by cosine"] = {"reused": reused, "wrong": wrong}
    return result


def _shares(found: Content) -> dict[str, float]:
    return {"reused": round(found["reused"], 1), "wrong": round(found["wrong"], 2)}


def _growth(reports: Sequence[Content]) -> dict[str, Any]:
    """By store: the number of facts, and the milliseconds of a recall after embedding and of a signal."""
    made: dict[str, Any] = {}
    for each in reports[0]["figures"].get("growth", []):
        times = [round(each[what]["p50"], 1) for what in ("recall", "signal")]
        made.setdefault(each["store"], []).append([each["facts"], *times])
    return made


def _aging(reports: Sequence[Content]) -> dict[str, Any]:
    """By store: how much slower a recall is in the last tenth, how much larger the server, and what is wrong."""
    result = {}
    for kind in ("SQLite", "PostgreSQL"):
        found = reports[0]["figures"][kind]
        times = found["milliseconds"]["recall"]
        memory = [value for name, value in found["megabytes"].items() if name.startswith("server")]
        result[kind] = {
            "recall": round(times[-1] / times[0], 2),
            "memory": round(max(each[-1] / each[1] for each in memory), 2),
        }
    result["wrong"] = {
        "count": sum(bar["measured"] for bar in reports[0]["bars"] if bar["name"].endswith("wrong or kept too long"))
    }
    return result


BENCHMARKS = {
    "speed": Benchmark("bench", "speed", (Part("speed", "speed.json", figures=_speed),), short=("--short",)),
    "recall": Benchmark("bench-recall", "recall", (Part("recall", "recall.json", figures=_recall),)),
    "learning": Benchmark(
        "bench-learning",
        "learning",
        (
            Part(
                "learning",
                "learning-*-report.json",
                tables="(?!)",
                more="(Change of MRR|Adaptive without)",
                aims="(held out|nobody rated|single|gain)",
                figures=_learning,
            ),
            Part(
                "learning-cost",
                "learning-covidq-report.json",
                tables="(Drift|Evidence)",
                aims="(new fact|drift|facts of|usefulness of|the same)",
            ),
            Part(
                "learning-answers",
                "learning-answers.json",
            ),
        ),
        quick=("--seeds", "1"),
    ),
    "detect": Benchmark(
        "bench-detect",
        "detect",
        (
            Part(
                "detect",
                "detect.json",
                tables="Conversations that nothing",
                more="Conversations that the",
            ),
        ),
    ),
    "conflicts": Benchmark(
        "bench-conflicts",
        "conflicts",
        (Part("conflicts", "conflicts.json", notes=False),),
        quick=("--facts", "1000"),
    ),
    "sessions": Benchmark(
        "bench-sessions",
        "sessions",
        (
            Part(
                "sessions",
                "sessions.json",
            ),
        ),
    ),
    "cache": Benchmark(
        "bench-cache",
        "cache",
        (
            Part(
                "reuse",
                "cache_geography.json",
                tables="All:",
                more="(Templates|Reused wrongly)",
                aims="(wrong answers|questions answered)",
                notes=False,
                figures=_reuse,
            ),
            Part(
                "reuse-pairs",
                "cache_geography.json",
                tables="Pairs",
                aims="pairs:",
            ),
            Part(
                "reuse-sets",
                "cache_geography.json",
                tables="(Leave-one-out|Other schemas)",
                aims="(geography|scholar|advising):",
                notes=False,
                figures=_sets,
            ),
            Part(
                "reuse-lookup",
                "cache_geography.json",
                tables="One lookup",
                aims="lookup",
            ),
        ),
    ),
    "values": Benchmark(
        "bench-values",
        "cache_values",
        (
            Part(
                "values",
                "cache_values.json",
            ),
        ),
        quick=("--sizes", "2000"),
    ),
    "sandbox": Benchmark(
        "bench-sandbox",
        "sandbox",
        (
            Part(
                "sandbox",
                "sandbox.json",
            ),
        ),
    ),
    "files": Benchmark(
        "bench-files",
        "files_per_call",
        (
            Part(
                "files",
                "files.json",
            ),
        ),
        quick=(),
    ),
    "claude-code": Benchmark(
        "bench-claude-code",
        "claude_code",
        (
            Part(
                "claude-code",
                "claude_code.json",
            ),
        ),
        quick=("--facts", "200", "--rounds", "5"),
    ),
    "server": Benchmark(
        "bench-server",
        "server",
        (
            Part(
                "server",
                "server.json",
            ),
        ),
        short=("--soak", "60"),
    ),
    "fairness": Benchmark("bench-fairness", "fairness", (Part("fairness", "fairness.json", aims="(?!)"),)),
    "scale": Benchmark("bench-scale", "scale", (Part("scale", "scale.json", figures=_growth),)),
    "insight": Benchmark("bench-insight", "insight", (Part("insight", "insight.json", aims="(?!)"),)),
    "regress": Benchmark(
        "bench-regress",
        "regress",
        (
            Part(
                "regress",
                "regress.json",
            ),
        ),
    ),
    "aging": Benchmark("bench-aging", "aging", (Part("aging", "aging.json", figures=_aging),)),
}
"""By the name that `--only` takes."""


def reports(part: Part, out: Path) -> list[Content]:
    """The reports that a run wrote for a part."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(out.glob(part.files))]
