"""The examples of the guide "How reuse is decided", as it has them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful import Heedful

TABLES = """
CREATE TABLE author (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE paper (id integer PRIMARY KEY, title text, venue text, year integer, cited integer);
CREATE TABLE writes (paper_id integer, author_id integer);
CREATE TABLE flight (id integer PRIMARY KEY, origin text, destination text, day text);
CREATE TABLE fare (code text PRIMARY KEY, meaning text);
CREATE TABLE plane (model text PRIMARY KEY, seats integer);
INSERT INTO author VALUES (1, 'Li Dong'), (2, 'Takashi Matsumoto'), (3, 'Ann Lee'), (4, 'Bo Chen'), (5, 'Cy Dee');
INSERT INTO paper VALUES (1, 'One', 'PLDI', 2014, 3), (2, 'Two', 'ACL', 2016, 5), (3, 'Three', 'CHI', 2015, 1);
INSERT INTO writes VALUES (1, 1), (2, 2), (3, 3), (3, 4);
INSERT INTO flight VALUES (1, 'Boston', 'Denver', 'Monday'), (2, 'Memphis', 'Miami', 'Wednesday');
INSERT INTO fare VALUES ('BH', 'economy'), ('QX', 'first class');
INSERT INTO plane VALUES ('B747', 400), ('A320', 180);
"""

AT = "SELECT title FROM paper WHERE venue = '{}' AND year = {} ORDER BY id"
COUNT = "SELECT count(*) FROM paper WHERE venue = '{}' AND year = {}"
BY = (
    "SELECT paper.title FROM paper JOIN writes ON writes.paper_id = paper.id JOIN author ON author.id = "
    "writes.author_id WHERE author.name = '{}' ORDER BY paper.id"
)
BY_OTHERWISE = (
    "SELECT p.title FROM author AS a, paper AS p, writes AS w WHERE a.name = '{}' AND w.author_id = a.id "
    "AND w.paper_id = p.id ORDER BY p.id"
)
TOGETHER = (
    "SELECT paper.title FROM paper, writes AS w, author AS a, writes AS v, author AS b WHERE a.name = '{}' "
    "AND b.name = '{}' AND w.paper_id = paper.id AND v.paper_id = paper.id AND w.author_id = a.id "
    "AND v.author_id = b.id ORDER BY paper.id"
)
MOST = BY.replace("ORDER BY paper.id", "ORDER BY paper.cited DESC, paper.id LIMIT 1")
SINCE = BY.replace(" ORDER BY", " AND paper.year = {} ORDER BY")
VENUES = BY.replace("SELECT paper.title", "SELECT DISTINCT paper.venue").replace(" ORDER BY paper.id", "")
WITH = (
    "SELECT DISTINCT b.name FROM writes AS w, author AS a, writes AS v, author AS b WHERE a.name = '{}' "
    "AND w.author_id = a.id AND v.paper_id = w.paper_id AND v.author_id = b.id AND b.id <> a.id"
)
FLIGHTS = "SELECT id FROM flight WHERE origin = '{}' AND destination = '{}' AND day = '{}'"
FARE = "SELECT meaning FROM fare WHERE code = '{}'"
SEATS = "SELECT seats FROM plane WHERE model = '{}'"

Proven = tuple[tuple[str, str], ...]

USED: tuple[tuple[Proven, str], ...] = (
    (
        (
            ("papers at PLDI in 2014", AT.format("PLDI", 2014)),
            ("which papers were at ACL in 2016?", AT.format("ACL", 2016)),
        ),
        "chi 2015 list of papers",
    ),
    (
        (("flights from Boston to Denver on Monday", FLIGHTS.format("Boston", "Denver", "Monday")),),
        "flights from Memphis to Miami on Wednesday",
    ),
    ((("papers by Li Dong", BY.format("Li Dong")),), "papers by Takashi Matsumoto"),
    (
        (
            ("how many papers in ACL 2016", COUNT.format("ACL", 2016)),
            ("how many papers were presented in PLDI 2014", COUNT.format("PLDI", 2014)),
        ),
        "how many papers are presented in chi 2015",
    ),
    (
        (
            ("papers written by Ann Lee and Bo Chen", TOGETHER.format("Ann Lee", "Bo Chen")),
            ("papers written by Li Dong and Cy Dee", TOGETHER.format("Li Dong", "Cy Dee")),
        ),
        "papers written by both Ann Lee and Cy Dee",
    ),
    (
        (
            ("the most cited paper of Li Dong", MOST.format("Li Dong")),
            ("what is the most cited paper of Ann Lee?", MOST.format("Ann Lee")),
        ),
        "Takashi Matsumoto's most cited paper",
    ),
    ((("what does fare code BH mean", FARE.format("BH")),), "what does fare code QX mean"),
    (
        (("papers by Li Dong", BY.format("Li Dong")), ("papers by Ann Lee", BY_OTHERWISE.format("Ann Lee"))),
        "papers by Takashi Matsumoto",
    ),
    (
        (
            ("what is the seating capacity of the B747", SEATS.format("B747")),
            ("how many people fit on the B747", SEATS.format("B747")),
        ),
        "how many people fit on the A320",
    ),
    (
        (("which flights go from Boston to Denver on Monday", FLIGHTS.format("Boston", "Denver", "Monday")),),
        "on Wednesday, which flights go from Memphis to Miami?",
    ),
    ((("papers by Li Dong", BY.format("Li Dong")),), "I need a list of the papers by Takashi Matsumoto"),
    (
        (
            ("venue for papers by Li Dong", VENUES.format("Li Dong")),
            ("conferences for papers by Li Dong", VENUES.format("Li Dong")),
        ),
        "conferences for papers by Takashi Matsumoto",
    ),
    (
        (("authors with Ann Lee", WITH.format("Ann Lee")), ("who does Ann Lee work with", WITH.format("Ann Lee"))),
        "who does Bo Chen work with",
    ),
)

REFUSED: tuple[tuple[Proven, str, str], ...] = (
    ((("papers of Li Dong in 2014", SINCE.format("Li Dong", 2014)),), "papers of Li Dong since 2014", "operators"),
    (
        (("what is the seating capacity of the B747", SEATS.format("B747")),),
        "how many people fit on the B747",
        "aggregate",
    ),
    ((("papers by Li Dong", BY.format("Li Dong")),), "papers not by Li Dong", "negation"),
    ((("venue for papers by Li Dong", VENUES.format("Li Dong")),), "conferences for papers by Li Dong", "words"),
    ((("authors with Ann Lee", WITH.format("Ann Lee")),), "who does Ann Lee work with", "aggregate"),
)


@pytest.fixture
def prove(store: Heedful, tmp_path: Path) -> Callable[[Proven], Heedful]:
    with sqlite3.connect(tmp_path / "papers.sqlite") as papers:
        papers.executescript(TABLES)
    store.connectors.create("papers", f"sqlite:///{tmp_path / 'papers.sqlite'}")

    def proving(proven: Proven) -> Heedful:
        for question, sql in proven:
            done = store.executions.execute_query(sql, question=question)
            store.feedback.create_positive(execution_id=done.execution_id)
        return store

    return proving


@pytest.mark.parametrize(("proven", "asked"), USED, ids=[asked for _, asked in USED])
def test_what_the_guide_says_is_used_is(prove: Callable[[Proven], Heedful], proven: Proven, asked: str) -> None:
    lookup = prove(proven).chat.execution_cache_lookup(asked)
    assert lookup.cache_hit, [(match.question, match.gate, match.reason) for match in lookup.matches]


@pytest.mark.parametrize(("proven", "asked", "gate"), REFUSED, ids=[asked for _, asked, _ in REFUSED])
def test_what_the_guide_says_is_refused_is(
    prove: Callable[[Proven], Heedful], proven: Proven, asked: str, gate: str
) -> None:
    lookup = prove(proven).chat.execution_cache_lookup(asked, similarity_threshold=0.0)
    assert (lookup.cache_hit, lookup.matches[0].gate) == (False, gate)
