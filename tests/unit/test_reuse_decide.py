"""When a proven query is served, rebound or refused, and by which gate."""

import re
import sqlite3
from datetime import datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heedful.sql.reuse.decision import Question, choose, decide
from heedful.sql.reuse.evidence import Evidence
from heedful.sql.reuse.reasons import Verdict
from heedful.sql.reuse.study import ProvenQuery
from heedful.sql.reuse.values import Known

MAY, JUNE = datetime(2024, 5, 10), datetime(2024, 6, 10)
VALUES = Known(
    {
        ("city", "name"): ["Paris", "Rome", "New York", "York", "Berlin", "Washington"],
        ("city", "state"): ["New York", "Texas", "Ohio", "Washington", "Nevada"],
        ("state", "name"): ["New York", "Texas", "Ohio", "Washington", "Nevada", "Maine"],
        ("river", "name"): ["Ohio", "Red", "Rhine"],
        ("flight", "origin"): ["Paris", "Rome", "Berlin"],
        ("flight", "goal"): ["Paris", "Rome", "Berlin"],
        ("film", "title"): ["The Sting", "Sting", "Heat"],
        ("customer", "status"): ["active", "closed", "open"],
    }
)


def verdict(
    asked: str, proven: str, sql: str, *, dialect: str = "sqlite", now: datetime = MAY, proven_at: datetime = MAY
) -> Verdict:
    return decide(asked, proven, sql, dialect=dialect, values=VALUES, now=now, proven_at=proven_at)


SALES = "SELECT SUM(amount) FROM sales WHERE year = 2023"
FLIGHTS = "SELECT id FROM flight WHERE origin = 'Paris' AND goal = 'Rome'"
CITIES = "SELECT name FROM city WHERE state = 'Texas'"
LARGEST = (
    "SELECT name FROM city WHERE population = (SELECT MAX(population) FROM city WHERE state = 'Texas') "
    "AND state = 'Texas'"
)
TOP = "SELECT name FROM customer ORDER BY revenue DESC LIMIT 5"
ORDERS = "SELECT COUNT(*) FROM orders WHERE items > 5"
STATUS = "SELECT name FROM customer WHERE status = 'open'"
JUNE_ORDERS = "SELECT id FROM orders WHERE placed < '2024-06-01'"

SERVED = [
    ("What were the sales in 2023?", "what were sales in 2023", SALES),
    ("Can you tell me the cities in Texas, please?", "What are the cities in Texas?", CITIES),
    ("List all the cities of Texas", "which cities are in texas", CITIES),
    ("What is the biggest city in Texas?", "what is the largest city in texas", LARGEST),
    ("How many orders have over five items?", "How many orders have more than 5 items?", ORDERS),
    ("the number of orders with more than 5 items", "How many orders have more than 5 items?", ORDERS),
    ("What’s the largest city in Texas", "What is the largest city in Texas?", LARGEST),
    ("flights to Rome from Paris", "flights from Paris to Rome", FLIGHTS),
    ("how many orders per region", "the number of orders for each region", "SELECT COUNT(*) FROM orders GROUP BY r"),
    ("customers with status open", 'customers with status "open"', STATUS),
]


@pytest.mark.parametrize(("question", "proven", "sql"), SERVED)
def test_the_same_question_in_other_words_is_served(question: str, proven: str, sql: str) -> None:
    result = verdict(question, proven, sql)
    assert (result.decision, result.gate, result.sql, result.parameters) == ("serve", "same", sql, {}), result.reason


REBOUND = [
    ("sales in 2024", "sales in 2023", SALES, "SELECT SUM(amount) FROM sales WHERE year = :p1", {"p1": 2024}),
    ("cities in NEVADA", "cities in texas", CITIES, "SELECT name FROM city WHERE state = :p1", {"p1": "Nevada"}),
    (
        "flights from Rome to Paris",
        "flights from Paris to Rome",
        FLIGHTS,
        "SELECT id FROM flight WHERE origin = :p1 AND goal = :p2",
        {"p1": "Rome", "p2": "Paris"},
    ),
    (
        "the top 10 customers",
        "the top 5 customers",
        TOP,
        TOP.replace("5", ":p1"),
        {"p1": 10},
    ),
    (
        "the top ten customers",
        "the top five customers",
        TOP,
        TOP.replace("5", ":p1"),
        {"p1": 10},
    ),
    (
        'customers with status "closed"',
        'customers with status "open"',
        STATUS,
        "SELECT name FROM customer WHERE status = :p1",
        {"p1": "closed"},
    ),
    (
        "orders placed before 2024-07-01",
        "orders placed before 2024-06-01",
        JUNE_ORDERS,
        "SELECT id FROM orders WHERE placed < '2024-07-01'",
        {},
    ),
]


@pytest.mark.parametrize(("question", "proven", "sql", "bound", "parameters"), REBOUND)
def test_a_question_that_differs_in_values_alone_is_rebound(
    question: str, proven: str, sql: str, bound: str, parameters: dict[str, object]
) -> None:
    result = verdict(question, proven, sql)
    assert (result.decision, result.sql, result.parameters) == ("rebind", bound, parameters), result.reason
    assert result.gate == "rebind"


def test_one_value_in_several_places_of_the_sql_changes_in_all_of_them() -> None:
    result = verdict("what is the largest city in Maine state", "what is the largest city in Texas state", LARGEST)
    assert (result.decision, result.gate) == ("refuse", "kind")  # city.state doesn't hold Maine.
    result = verdict("what is the largest city in Ohio state", "what is the largest city in Texas state", LARGEST)
    assert result.decision == "rebind"
    assert result.parameters == {"p1": "Ohio"}
    assert result.display == LARGEST.replace("Texas", "Ohio")


REFUSED = [
    # Values.
    ("sales in 2024", "sales in 2023", "SELECT SUM(amount) FROM sales", "literals"),
    ("sales in 2024", "sales in 2023", "SELECT SUM(amount) FROM sales WHERE year = 2023 OR fiscal = 2023", "literals"),
    ("cities in Bavaria", "cities in Texas", CITIES, "literals"),
    ("cities in Maine", "cities in Texas", CITIES, "kind"),
    ("orders of 5 or 7 items", "orders of 5 or 5 items", "SELECT id FROM orders WHERE items IN (5, 5)", "literals"),
    ("flights from Rome to Rome", "flights from Paris to Rome", FLIGHTS, "literals"),
    ("the top 2.5 customers", "the top 5 customers", TOP, "literals"),
    ("the 3 largest cities", "the 1 largest cities", "SELECT name FROM city ORDER BY size DESC LIMIT 1", "literals"),
    ("orders over €5", "orders over $5", "SELECT id FROM orders WHERE total > 5", "words"),
    ("growth above -5", "growth above 5", "SELECT id FROM growth WHERE share > 5 AND 1 < 5", "literals"),
    # A value that may be of two kinds.
    ("people of New York", "people of Berlin", "SELECT size FROM city WHERE name = 'Berlin'", "kind"),
    ("what states border the Ohio", "what states border Texas", "SELECT b FROM city WHERE state = 'Texas'", "literals"),
    ("cities in Ohio", "cities in Texas", CITIES, "kind"),
    ("mayor of York", "mayor of New York", "SELECT m FROM city WHERE name = 'York'", "words"),
    # Operators.
    ("what is the smallest city in Texas", "what is the largest city in Texas", LARGEST, "operators"),
    ("orders with at least 5 items", "orders with more than 5 items", ORDERS, "operators"),
    ("orders placed after 2024-06-01", "orders placed before 2024-06-01", JUNE_ORDERS, "operators"),
    ("orders placed after June", "orders placed before June", JUNE_ORDERS, "operators"),
    ("orders with items < 5", "orders with items > 5", ORDERS, "words"),
    # Negation.
    ("customers that are not open", "customers that are open", STATUS, "negation"),
    ("which customers don't pay", "which customers pay", STATUS, "negation"),
    ("cities without a river", "cities with a river", CITIES, "negation"),
    # Aggregate.
    ("how many cities are in Texas", "which cities are in Texas", CITIES, "aggregate"),
    ("the average of sales in 2023", "the total of sales in 2023", SALES, "aggregate"),
    ("when did the customer pay", "where did the customer pay", STATUS, "aggregate"),
    # Scope and words.
    ("sales in 2023 by region", "sales in 2023", SALES, "scope"),
    ("only open customers", "open customers", STATUS, "scope"),
    ("the major cities in Texas", "the cities in Texas", CITIES, "words"),
    ("citees in Texas", "cities in Texas", CITIES, "words"),
    ("which inactive customers pay", "which active customers pay", STATUS, "words"),
    ("shops that are close", "shops that are closed", STATUS, "words"),
    ("what are the largest cities in Texas", "what is the largest city in Texas", LARGEST, "words"),
    # Order.
    ("papers that Knuth cites", "papers that cite Knuth", "SELECT id FROM paper", "argument_order"),
    ("customers that suppliers pay", "customers that pay suppliers", STATUS, "argument_order"),
    ("trains Rome to Paris", "trains Paris to Rome", "SELECT id FROM train WHERE route = 7", "argument_order"),
    # Values that can't be rebound, because it isn't certain which column they belong to.
    ("actors in Sting", "actors in The Sting", "SELECT a FROM film, part WHERE title = 'The Sting'", "literals"),
    ("actors in Aliens", "actors in Alien", "SELECT a FROM film, part WHERE title = 'Alien'", "literals"),
    # Quoted text and SQL.
    ('what does "opened" mean', 'what does "open" mean', STATUS, "literals"),
    ('films called "sting"', 'films called "the sting"', "SELECT id FROM film WHERE code = 5", "literals"),
    ("cities in Texas", "cities in Texas", "SELECT FROM WHERE (", "sql"),
    ("cities in Texas", "cities in Texas", "SELECT 1; SELECT 2", "sql"),
    ("cities in Texas", "cities in Texas", "SELECT name FROM city WHERE state = :state", "sql"),
    ("", "cities in Texas", CITIES, "words"),
]


@pytest.mark.parametrize(("question", "proven", "sql", "gate"), REFUSED)
def test_a_question_that_only_looks_alike_is_refused_by_its_gate(
    question: str, proven: str, sql: str, gate: str
) -> None:
    result = verdict(question, proven, sql)
    assert (result.decision, result.gate) == ("refuse", gate), result.reason
    assert result.sql is None
    assert result.reason


def test_last_month_is_another_month_in_june() -> None:
    sql = "SELECT SUM(amount) FROM sales WHERE day BETWEEN '2024-04-01' AND '2024-04-30'"
    assert verdict("sales last month", "sales last month", sql, now=MAY, proven_at=MAY).decision == "serve"
    later = verdict("sales last month", "sales last month", sql, now=JUNE, proven_at=MAY)
    assert (later.decision, later.display) == ("rebind", sql.replace("04-01", "05-01").replace("04-30", "05-31"))
    vague = sql.replace("04-01", "04-03")
    later = verdict("sales last month", "sales last month", vague, now=JUNE, proven_at=MAY)
    assert (later.decision, later.gate) == ("refuse", "relative_dates")


def test_last_month_may_be_asked_again_when_the_sql_follows_the_clock() -> None:
    sql = "SELECT SUM(amount) FROM sales WHERE day >= date('now', 'start of month', '-1 month')"
    assert verdict("sales last month", "sales last month", sql, now=JUNE, proven_at=MAY).decision == "serve"
    assert verdict("sales last year", "sales last month", sql).gate == "relative_dates"


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (f"0.{'9' * 98}", None),
        (f"0.{'9' * 99}", "9” is not a number."),
        ("9" * 18, None),
        ("9" * 19, "9” is too large a number."),
    ],
    ids=["decimal", "long", "integer", "large"],
)
def test_a_number_is_as_long_as_databases_take_it_at_most(number: str, problem: str | None) -> None:
    question, sql = "cities with more than {} people", "SELECT name FROM city WHERE population > 5"
    made = verdict(question.format(number), question.format(5), sql)
    assert made.decision == ("rebind" if problem is None else "refuse")
    assert problem is None or made.reason.endswith(problem)


@pytest.mark.parametrize("question", ["Is Texas?", "Has Texas?", "Was Texas the largest?"])
def test_a_question_that_ends_before_its_noun_is_the_same_as_itself(question: str) -> None:
    assert verdict(question, question, CITIES).decision == "serve"
    assert verdict(question.replace("Texas", "Ohio"), question, CITIES).decision == "refuse"


@pytest.mark.parametrize(
    ("asked", "proven", "which"),
    [("sales last month", "sales", "question you asked"), ("sales", "sales last month", "proven question")],
)
def test_a_period_that_only_one_question_names_is_said(asked: str, proven: str, which: str) -> None:
    made = verdict(asked, proven, "SELECT SUM(amount) FROM sales")
    assert (made.decision, made.gate) == ("refuse", "relative_dates")
    assert made.reason.startswith(f"Only the {which} names “last month” (")


def test_what_is_so_now_may_be_asked_at_any_time_unless_the_sql_names_a_date() -> None:
    question = "which customers are currently open"
    assert verdict(question, question, STATUS, now=JUNE, proven_at=MAY).decision == "serve"
    dated = "SELECT name FROM customer WHERE closes > '2024-05-10'"
    assert verdict(question, question, dated, now=JUNE, proven_at=MAY).gate == "relative_dates"


def test_a_word_beside_a_value_settles_what_it_names() -> None:
    sql = "SELECT length FROM river WHERE name = 'Rhine'"
    assert verdict("how long is the Ohio river", "how long is the Rhine river", sql).decision == "rebind"
    assert verdict("how long is the Ohio", "how long is the Rhine", sql).decision == "refuse"


def test_a_proven_value_of_the_same_two_kinds_settles_what_is_meant() -> None:
    sql = "SELECT m FROM city WHERE name = 'Washington'"
    assert verdict("the mayor of New York", "the mayor of Washington", sql).parameters == {"p1": "New York"}
    assert verdict("the mayor of New York", "the mayor of Rome", sql.replace("Washington", "Rome")).gate == "kind"


def test_a_value_is_written_as_its_column_writes_it() -> None:
    result = verdict("cities in nEW yORK state", "cities in texas state", CITIES)
    assert result.parameters == {"p1": "New York"}
    lower = CITIES.replace("Texas", "texas")  # Compared in another case than the column's, which finds nothing here.
    assert verdict("cities in ohio state", "cities in texas state", lower).gate == "kind"


def test_a_value_with_a_quotation_mark_stays_one_value() -> None:
    values = Known({("shop", "name"): ["Anna's Corner", "Ben's"]})
    sql = "SELECT sales FROM shop WHERE name = 'Ben''s'"
    decision = decide(
        "sales of Anna's Corner", "sales of Ben's", sql, dialect="sqlite", values=values, now=MAY, proven_at=MAY
    )
    assert decision.parameters == {"p1": "Anna's Corner"}
    assert decision.display == "SELECT sales FROM shop WHERE name = 'Anna''s Corner'"


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "duckdb"])
def test_parameters_are_written_alike_in_each_dialect(dialect: str) -> None:
    result = verdict("cities in Ohio state", "cities in Texas state", CITIES, dialect=dialect)
    assert result.sql == "SELECT name FROM city WHERE state = :p1"


ODD = """SELECT  c.name,count(*) n
FROM city c,  state AS s
WHERE s.name=c.state AND c.state='Texas' and c.people>1.50 ORDER by n LIMIT 5"""


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "postgres", "duckdb", "mysql", "mariadb", "unheard-of"])
def test_values_are_put_in_their_places_and_nothing_else_is_touched(dialect: str) -> None:
    proven = "the 5 cities in Texas state with over 1.5 people"
    result = verdict("the 7 cities in Ohio state with over 2.25 people", proven, ODD, dialect=dialect)
    assert (result.decision, result.parameters) == ("rebind", {"p1": 7, "p2": "Ohio"}), result.reason
    assert result.sql == ODD.replace("'Texas'", ":p2").replace("LIMIT 5", "LIMIT :p1").replace("1.50", "2.25")
    assert result.display == ODD.replace("Texas", "Ohio").replace("LIMIT 5", "LIMIT 7").replace("1.50", "2.25")
    assert verdict(proven, proven, ODD, dialect=dialect).display == ODD


def test_layout_alone_is_no_conflict() -> None:
    known = Evidence("postgresql", VALUES)
    proven = [
        ProvenQuery("a", "cities in Texas state", CITIES, MAY),
        ProvenQuery("b", "the cities in Texas state", CITIES.lower().replace("'texas'", "'Texas'"), MAY),
    ]
    for each in proven:
        known.add(each)
    for asked, decision in (("cities in Texas state", "serve"), ("cities in Ohio state", "rebind")):
        given = choose(Question(asked, known.values, MAY), proven, evidence=known)
        assert [each.decision for each in given] == [decision, decision]


def test_a_word_beside_a_value_stays_a_word_of_its_own() -> None:
    sql = "SELECT name FROM city WHERE state IN('Texas')AND people>=5ORDER BY name"
    result = verdict("cities in Ohio state with at least 7 people", "cities in Texas state with at least 5 people", sql)
    assert result.sql == "SELECT name FROM city WHERE state IN(:p1)AND people>=:p2 ORDER BY name"


VOCABULARY = "which cities rivers border in Texas not the largest how many 5 2023 by only Rome from to"
WORDS = st.lists(st.sampled_from(VOCABULARY.split()), min_size=1, max_size=9).map(" ".join)


@given(WORDS)
def test_a_question_is_served_for_itself(question: str) -> None:
    assert verdict(question, question, CITIES).decision == "serve"


@given(WORDS, st.integers(0, 9), st.sampled_from(["not", "only", "smallest", "average", "12", "each", "before"]))
@pytest.mark.slow
def test_a_word_that_decides_never_goes_unnoticed(question: str, place: int, word: str) -> None:
    words = question.split()
    words.insert(place, word)
    assume(words != question.split())
    assert verdict(" ".join(words), question, CITIES).decision == "refuse"
    assert verdict(question, " ".join(words), CITIES).decision == "refuse"


@given(st.integers(2, 10**9), st.integers(2, 10**9))
def test_another_number_is_rebound_and_never_served(old: int, new: int) -> None:
    assume(old != new)
    sql = f"SELECT id FROM orders WHERE total > {old}"
    there = verdict(f"orders over {new:,}", f"orders over {old}", sql)
    assert (there.decision, there.parameters) == ("rebind", {"p1": new})
    assert there.display is not None
    back = verdict(f"orders over {old}", f"orders over {new}", there.display)
    assert back.display == sql


@given(st.sampled_from(["Texas", "Ohio", "Washington", "New York"]), st.sampled_from(["Texas", "Ohio", "New York"]))
def test_a_rebound_query_finds_what_the_written_out_one_finds(old: str, new: str) -> None:
    rows = sqlite3.connect(":memory:")
    rows.execute("CREATE TABLE city (name, state, population)")
    rows.executemany("INSERT INTO city VALUES (?, ?, ?)", [("a", "Texas", 2), ("b", "Ohio", 3), ("c", "New York", 4)])
    result = verdict(
        f"the largest city in {new} state", f"the largest city in {old} state", LARGEST.replace("Texas", old)
    )
    assert result.sql is not None
    assert result.display is not None
    bound = rows.execute(result.sql, dict(result.parameters)).fetchall()
    assert bound == rows.execute(LARGEST.replace("Texas", new)).fetchall()
    assert bound == rows.execute(result.display).fetchall()
    assert len(re.findall(":p1", result.sql)) == (2 if old != new else 0)
