"""Values of columns in questions: accents, plurals and numbers in words; in memory and in an index."""

from datetime import datetime

import pytest

from heedful.sql.reuse.decision import Question, choose
from heedful.sql.reuse.evidence import Evidence
from heedful.sql.reuse.reasons import Verdict
from heedful.sql.reuse.study import ProvenQuery
from heedful.sql.reuse.values import Known, ValueIndex, Values

NOW = datetime(2024, 5, 10)
COLUMNS = {
    ("product", "category"): ["Laptop", "Phone", "Battery", "Box"],
    ("film", "title"): ["Alien", "Café Society", "Heat"],
    ("shop", "town"): ["Saint-Étienne", "Leeds", "Hull"],
    ("shop", "city"): ["saint-étienne", "LEEDS"],
}
SOLD = "SELECT COUNT(*) FROM product WHERE category = '{}'"
YEAR = "SELECT year FROM film WHERE title = '{}'"
LARGE = "SELECT name FROM shop WHERE size > {}"


def in_memory() -> Values:
    return Known(COLUMNS)


def on_disk() -> Values:
    made = ValueIndex()
    for column, values in COLUMNS.items():
        made.add(column, values)
    made.finish()
    return made


@pytest.fixture(params=[in_memory, on_disk])
def values(request: pytest.FixtureRequest) -> Values:
    made: Values = request.param()
    return made


def ask(values: Values, asked: str, *proven: tuple[str, str]) -> Verdict:
    queries = [ProvenQuery(place, question, sql, NOW) for place, (question, sql) in enumerate(proven)]
    evidence = Evidence("sqlite", values, queries)
    (first, *_) = choose(Question(asked, evidence.values, NOW), queries, evidence=evidence)
    return first


def test_both_know_the_same(values: Values) -> None:
    assert values.columns_of("saint etienne") == {("shop", "town"), ("shop", "city")}
    assert values.spellings("shop", "town", "Saint Etienne") == {"Saint-Étienne"}
    assert values.kind("shop", "city") == values.kind("shop", "town") == "shop.town"
    assert values.longest(["in", "cafe", "society"], 1) == 2
    assert not values.has("film", "title", "Leeds")


def test_the_singular_in_a_column_is_a_value_where_a_proven_question_shows_that(values: Values) -> None:
    given = ask(values, "how many phones were sold?", ("How many laptops were sold?", SOLD.format("Laptop")))
    assert (given.decision, given.display) == ("rebind", SOLD.format("Phone"))
    given = ask(values, "how many batteries were sold?", ("How many boxes were sold?", SOLD.format("Box")))
    assert given.display == SOLD.format("Battery")


def test_the_plural_of_a_name_is_another_name(values: Values) -> None:
    given = ask(values, "which year is Aliens from", ("which year is Heat from", YEAR.format("Heat")))
    assert (given.decision, given.gate) == ("refuse", "kind")


@pytest.mark.parametrize(
    ("asked", "number"),
    [
        ("shops larger than two hundred and fifty", "250"),
        ("shops larger than twenty-five", "25"),
        ("shops larger than 1.5 million", "1500000"),
        ("shops larger than a thousand", "1000"),
        ("shops larger than ninety", "90"),
    ],
)
def test_numbers_in_words(values: Values, asked: str, number: str) -> None:
    given = ask(values, asked, ("shops larger than 300", LARGE.format(300)))
    assert (given.decision, given.display) == ("rebind", LARGE.format(number))


def test_two_numbers_in_a_row_stay_two(values: Values) -> None:
    given = ask(values, "shops larger than nineteen ninety", ("shops larger than 300", LARGE.format(300)))
    assert given.decision == "refuse"
