"""Texts to measure with: public data sets from a folder, or sentences that are made here."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import locomo
from heedful.providers.embedding import bundled

VARIABLE = "HEEDFUL_BENCH_DATA"

WHERE = """\
The data sets are public; put these files into one folder and name it with --data or HEEDFUL_BENCH_DATA:
  qqp_dev.json.gz      QQP, Quora Question Pairs (GLUE): a list of {"text_a", "text_b", "label"}
  clinc150.json.gz     CLINC150 (github.com/clinc/oos-eval, data_full.json): {"train": [[text, intent], …], …}
  locomo_dev.json.gz   LoCoMo (github.com/snap-research/locomo, locomo10.json): a list of conversations
  geography.json, geography.sqlite
                       GeoQuery with SQL (github.com/jkkummerfeld/text2sql-data, data/geography.json and its database)
  covidq.csv           COVID-Q (github.com/JerryWeiAI/COVID-Q): questions by class (not read by these benchmarks)"""

QUERIES = 1000
"""Texts that are kept out of the facts, to ask with."""

LONGEST = 900
"""Longer texts would be split into several facts."""

TOPICS, TOPIC_WORDS, COMMON = 2000, 30, 200
"""Topics of made sentences, the words of each, and the commonest words, which belong to none."""

_WORD = re.compile("a|i|[a-z]{2,}")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Distinct facts, queries that are none of them, and a word on where they come from."""

    facts: list[str]
    queries: list[str]
    origin: str

    @property
    def key(self) -> str:
        """The same for the same texts."""
        joined = "\0".join([*self.facts, "\1", *self.queries])
        return hashlib.blake2b(joined.encode(), digest_size=8).hexdigest()


def folder(given: str | None) -> Path | None:
    """The data folder: the one given, or the one in the environment."""
    name = given or os.environ.get(VARIABLE)
    return Path(name).expanduser() if name else None


def corpus(data: Path | None, size: int, seed: int = 0) -> Corpus:
    """`size` facts and the queries for them, the same ones for the same seed."""
    if data is None:
        made = list(generated(size + QUERIES, seed))
        return Corpus(
            made[QUERIES:],
            made[:QUERIES],
            "sentences made by the benchmark; approximate vector searches find less in them than in real texts",
        )
    real = distinct(real_texts(data))
    np.random.default_rng(seed).shuffle(real)
    queries, rest = real[:QUERIES], real[QUERIES:]
    facts = topped_up(rest, size, seed)
    fastest = min(size, len(rest))
    return Corpus(facts, queries, f"QQP, CLINC150 and LoCoMo: {fastest:,} texts, and {size - fastest:,} pairs of them")


def real_texts(data: Path) -> Iterator[str]:
    """All texts of the data sets in a folder."""
    for pair in _json(data / "qqp_dev.json.gz"):
        yield pair["text_a"]
        yield pair["text_b"]
    for split in _json(data / "clinc150.json.gz").values():
        for text, _ in split:
            yield text
    for conversation in locomo.read(data / locomo.FILE):
        for turn in conversation.turns:
            yield turn.text


def distinct(texts: Iterable[str]) -> list[str]:
    """Each text once, without white space at its ends; those that are too short or too long are left out."""
    return list(dict.fromkeys(text.strip() for text in texts if 3 <= len(text.strip()) <= LONGEST))


def topped_up(texts: list[str], size: int, seed: int) -> list[str]:
    """The first `size` texts; if there are too few, pairs of them are added."""
    found = dict.fromkeys(texts[:size])
    random = np.random.default_rng(seed + 1)
    short = [text for text in texts if len(text) <= LONGEST // 2]
    while len(found) < size:
        first, second = random.integers(0, len(short), 2)
        found[f"{short[first]} {short[second]}"] = None
    return list(found)


def generated(count: int, seed: int) -> Iterator[str]:
    """Distinct sentences: half of their words belong to a topic, half are as frequent as in real text (Zipf)."""
    random = np.random.default_rng(seed)
    words = common_words()
    weights = 1 / (np.arange(len(words)) + 2.7)
    weights /= weights.sum()
    topics = random.integers(COMMON, len(words), (TOPICS, TOPIC_WORDS))
    seen: set[str] = set()
    while len(seen) < count:
        lengths = random.integers(5, 20, 1000)
        subject = np.repeat(random.integers(0, TOPICS, 1000), lengths)
        anywhere = random.choice(len(words), lengths.sum(), p=weights)
        about_it = topics[subject, random.integers(0, TOPIC_WORDS, len(subject))]
        drawn = np.where(random.random(len(subject)) < 0.5, about_it, anywhere)
        for places in np.split(drawn, np.cumsum(lengths)[:-1]):
            sentence = " ".join(words[place] for place in places).capitalize() + "."
            if sentence not in seen and len(seen) < count:
                seen.add(sentence)
                yield sentence


def common_words() -> list[str]:
    """The English words that the bundled model's tokenizer has whole, the most frequent first."""
    numbers: dict[str, int] = json.loads(bundled()._tokenizer_file.read_bytes())["model"]["vocab"]
    return sorted((word for word in numbers if _WORD.fullmatch(word)), key=numbers.__getitem__)


def _json(file: Path) -> Any:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        return json.load(stream)
