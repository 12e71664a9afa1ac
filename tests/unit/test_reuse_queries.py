"""Proven SQL: its literals, whether it is deterministic."""

from datetime import datetime

import pytest

from heedful.sql.reuse.query_parts import canonical, follows_clock, nondeterminism, parse_query
from heedful.sql.reuse.study import study
from heedful.sql.reuse.values import Known

VALUES = Known({("city", "state"): ["texas", "ohio"], ("city", "name"): ["austin", "ohio"], ("t", "x"): ["texas"]})


@pytest.mark.parametrize(
    ("sql", "dialect", "why"),
    [
        ("SELECT now()", "postgres", "CURRENT_TIMESTAMP"),
        ("SELECT * FROM t WHERE day = CURRENT_DATE", "sqlite", "CURRENT_DATE"),
        ("SELECT * FROM t WHERE day > date('now', '-1 day')", "sqlite", "clock"),
        ("SELECT date()", "sqlite", "clock"),
        ("SELECT * FROM t ORDER BY random()", "sqlite", "RAND"),
        ("SELECT gen_random_uuid()", "postgres", "UUID"),
        ("SELECT nextval('s')", "postgres", "NEXTVAL"),
        ("SELECT name FROM t LIMIT 3", "sqlite", "LIMIT"),
        ("SELECT name FROM t OFFSET 3", "postgres", "LIMIT"),
        ("SELECT name FROM t FETCH FIRST 3 ROWS ONLY", "postgres", "LIMIT"),
        ("SELECT name FROM (SELECT name FROM t LIMIT 3) ORDER BY name", "sqlite", "LIMIT"),
        ("SELECT * FROM t TABLESAMPLE SYSTEM (10)", "postgres", "TABLESAMPLE"),
        ("SELECT FROM WHERE (", "sqlite", "parsed"),
    ],
)
def test_what_may_answer_differently_on_the_same_data_says_why(sql: str, dialect: str, why: str) -> None:
    assert why in (nondeterminism(sql, dialect) or "")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM t ORDER BY size DESC LIMIT 3",
        "SELECT MAX(size) FROM t LIMIT 1",
        "SELECT name FROM t WHERE name = 'random'",
        "SELECT date(day) FROM t",
        "SELECT strftime('%Y', day) FROM t",
    ],
)
def test_what_always_answers_the_same_is_deterministic(sql: str) -> None:
    assert nondeterminism(sql, "sqlite") is None


def test_only_the_clock_makes_a_query_follow_the_clock() -> None:
    assert follows_clock("SELECT * FROM t WHERE day = CURRENT_DATE", "postgres")
    assert not follows_clock("SELECT random()", "sqlite")
    assert not follows_clock("SELECT * FROM t WHERE day = '2024-05-01'", "postgres")


def test_literals_know_the_column_they_are_compared_with() -> None:
    query = parse_query(
        "SELECT a.name FROM city AS a WHERE a.state = 'texas' AND 5 < a.size "
        "AND a.id IN (SELECT t.id FROM t WHERE lower(x) IN ('austin') AND a.name = 'ohio') LIMIT 3",
        "sqlite",
    )
    assert query is not None
    assert {each.text: (each.column, each.operator) for each in query.literals} == {
        "texas": (("city", "state"), "eq"),
        "5": (("city", "size"), "lt"),
        "austin": (("t", "x"), "in"),
        "ohio": (("city", "name"), "eq"),
        "3": (None, "limit"),
    }


def test_the_column_of_a_literal_is_unknown_when_several_tables_might_have_it() -> None:
    query = parse_query("SELECT 1 FROM city, t WHERE x = 'texas'", "sqlite")
    assert query is not None
    assert [each.column for each in query.literals if each.quoted] == [None]


@pytest.mark.parametrize(
    ("question", "sql", "opened"),
    [
        ("cities in texas", "SELECT name FROM city WHERE state = 'texas'", ["texas"]),
        ("cities in texas", "SELECT name FROM city WHERE state = 'texas' AND name <> 'austin'", ["texas"]),
        ("texas cities in texas", "SELECT name FROM city WHERE state = 'texas'", []),
        ("cities in texas", "SELECT name FROM city, t WHERE state = 'texas' OR x = 'texas'", []),
        ("cities of the lone star state", "SELECT name FROM city WHERE state = 'texas'", []),
        ("ohio of ohio", "SELECT name FROM city WHERE state = 'ohio' AND name = 'ohio'", []),
        ("cities above 5", "SELECT name FROM city WHERE size > 5", ["5"]),
        ("cities above five", "SELECT name FROM city WHERE size > 5", ["5"]),
        ("cities above 5", "SELECT name FROM city WHERE size > 5 AND rank < 5", []),
        ("cities above 5", "SELECT name FROM city WHERE size > 5 * 1000", []),
        ("the 1 largest city", "SELECT name FROM city ORDER BY size DESC LIMIT 1", []),
        ("cities like texas", "SELECT name FROM city WHERE state LIKE 'texas'", []),
    ],
)
def test_a_value_is_certain_only_when_question_and_sql_agree_on_it(question: str, sql: str, opened: list[str]) -> None:
    found = study(question, sql, "sqlite", VALUES, datetime(2024, 3, 15))
    assert found is not None
    assert [each.text for each in found.open if each.certain] == opened


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "SELECT c.name FROM city AS c WHERE c.state = 'ohio' AND c.size > 5",
            "select NAME from City where size>5 and 'ohio'=state",
        ),
        (
            "SELECT a.x FROM a JOIN b ON a.i = b.i WHERE b.y = 1",
            "SELECT q.x FROM b AS w, a AS q WHERE w.y = 1 AND w.i = q.i",
        ),
        (
            "SELECT a.x FROM a WHERE a.i IN (SELECT b.i FROM b WHERE b.k IN ('p', 'q'))",
            "SELECT z.x FROM a z WHERE z.i IN (SELECT y.i FROM b y WHERE y.k IN ('q', 'p'))",
        ),
        (
            "SELECT a.i FROM a, b, c WHERE a.i = b.i AND b.i = c.i AND b.i > 3 ORDER BY c.i",
            "SELECT c.i FROM a JOIN b ON a.i = b.i JOIN c ON c.i = a.i WHERE a.i > 3 ORDER BY b.i",
        ),
        ("SELECT MAX(DISTINCT x) FROM a", "SELECT MAX(x) FROM a"),
        ("SELECT DISTINCT x, COUNT(1) FROM a GROUP BY x", "SELECT x, COUNT(*) FROM a GROUP BY x"),
        ("SELECT DISTINCT COUNT(x) FROM a", "SELECT COUNT(x) FROM a"),
    ],
)
def test_other_spellings_of_one_statement_are_equal(one: str, other: str) -> None:
    first, second = parse_query(one, "sqlite"), parse_query(other, "sqlite")
    assert first is not None
    assert second is not None
    assert canonical(first.sql, first.dialect) == canonical(second.sql, second.dialect)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a.x FROM a LEFT JOIN b ON a.i = b.i", "SELECT a.x FROM b LEFT JOIN a ON a.i = b.i"),
        ("SELECT * FROM a, b", "SELECT * FROM b, a"),
        ("SELECT x, y FROM a", "SELECT y, x FROM a"),
        ("SELECT x FROM a WHERE y < z", "SELECT x FROM a WHERE z < y"),
        ("SELECT x FROM a WHERE y = 1 OR z = 1", "SELECT x FROM a WHERE y = 1 AND z = 1"),
        ("SELECT a.i FROM a LEFT JOIN b ON a.i = b.i", "SELECT b.i FROM a LEFT JOIN b ON a.i = b.i"),
        ("SELECT a.i FROM a, b WHERE a.i = b.i OR a.k = 1", "SELECT b.i FROM a, b WHERE a.i = b.i OR a.k = 1"),
        ("SELECT COUNT(DISTINCT x) FROM a", "SELECT COUNT(x) FROM a"),
        ("SELECT COUNT(x) FROM a", "SELECT COUNT(*) FROM a"),
        ("SELECT DISTINCT y FROM a GROUP BY x, y", "SELECT y FROM a GROUP BY x, y"),
        (
            "SELECT x FROM a WHERE i IN (SELECT i FROM b WHERE y = 1)",
            "SELECT x FROM a WHERE i IN (SELECT i FROM b WHERE b.y = 1)",
        ),
        ("SELECT count(*) FROM a, b", "SELECT count(*) FROM a, c"),
    ],
)
def test_what_may_mean_something_else_is_not_equal(one: str, other: str) -> None:
    first, second = parse_query(one, "sqlite"), parse_query(other, "sqlite")
    assert first is not None
    assert second is not None
    assert canonical(first.sql, first.dialect) != canonical(second.sql, second.dialect)


def test_statements_that_differ_in_open_values_alone_have_one_template() -> None:
    rows = [
        ("cities in texas", "SELECT name FROM city WHERE state = 'texas'"),
        ("ohio cities", "select NAME from CITY where state='ohio'"),
        ("cities", "SELECT name FROM city WHERE state = 'texas'"),
    ]
    first, second, third = (study(question, sql, "sqlite", VALUES, datetime(2024, 3, 15)) for question, sql in rows)
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.template == second.template != third.template


def test_columns_that_share_their_values_have_one_kind() -> None:
    known = Known({("a", "x"): list("pqrst"), ("b", "y"): list("pqr"), ("c", "z"): list("ptuvw")})
    assert known.kind("a", "x") == known.kind("B", "Y") == "a.x"
    assert known.kind("c", "z") == "c.z"
    assert known.columns_of("P") == {("a", "x"), ("b", "y"), ("c", "z")}


def test_the_longest_value_is_found() -> None:
    known = Known({("city", "name"): ["York", "New York", "New York City"]})
    words = ["from", "new", "york", "city", "to", "york"]
    assert [known.longest(words, place) for place in range(len(words))] == [0, 3, 1, 0, 0, 1]
