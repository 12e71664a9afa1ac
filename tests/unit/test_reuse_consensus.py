"""Proven questions that agree decide on another one with the same kinds of values."""

from datetime import datetime

import pytest

from heedful.sql.reuse.decision import Question, choose, same_frame_ids
from heedful.sql.reuse.evidence import Evidence
from heedful.sql.reuse.reasons import Verdict
from heedful.sql.reuse.study import ProvenQuery
from heedful.sql.reuse.values import Known

NOW = datetime(2024, 5, 10)
VALUES = Known(
    {
        ("shop", "town"): ["Leeds", "York", "Bath", "Hull"],
        ("shop", "name"): ["Old Mill", "Red Barn", "Blue Door"],
        ("staff", "name"): ["Ann Lee", "Bob Ray", "Cy Moss", "ann lee"],
        ("dish", "name"): ["soup", "pie", "Old Mill"],
    }
)
SHOPS = "SELECT name FROM shop WHERE town = '{}'"
COUNT = "SELECT COUNT(*) FROM shop WHERE town = '{}'"
STAFF = "SELECT s.name FROM staff s, shop p WHERE s.shop_id = p.id AND p.name LIKE '%{}%'"
BIGGEST = "SELECT name FROM shop ORDER BY size DESC LIMIT 1"
SIZE = "SELECT size FROM shop WHERE name = '{}'"
BAND = "SELECT name FROM shop WHERE size BETWEEN {0} AND {0} + 100"

PROVEN = [
    ("which shops are in {Leeds}", SHOPS),
    ("which shops are there to visit in {York}", SHOPS),
    ("shops that are open in {Bath}", SHOPS),
    ("how many shops does {Leeds} have", COUNT),
    ("how many shops are open in {Hull}", COUNT),
    ("who works at the {Old Mill}", STAFF),
    ("the people who work at the {Red Barn}", STAFF),
    ("shops of size {300}", BAND),
    ("shops that have the size {500}", BAND),
]


def evidence(*rows: tuple[str, str]) -> Evidence:
    """Each row is a question with its value in braces, and the SQL that the value goes into."""
    proven = []
    for place, (question, sql) in enumerate(rows):
        value = question[question.index("{") + 1 : question.index("}")] if "{" in question else ""
        proven.append(ProvenQuery(place, question.replace("{", "").replace("}", ""), sql.format(value), NOW))
    made = Evidence("sqlite", VALUES, proven)
    PROVEN_OF[id(made)] = proven
    return made


PROVEN_OF: dict[int, list[ProvenQuery]] = {}


def best(asked: str, known: Evidence) -> Verdict:
    proven = PROVEN_OF[id(known)]
    question = Question(asked, known.values, NOW)
    ids = same_frame_ids(question, known)
    verdicts = choose(question, [each for each in proven if each.id in ids] or proven, evidence=known)
    return min(verdicts, key=lambda verdict: ["serve", "rebind", "refuse"].index(verdict.decision))


@pytest.mark.parametrize(
    ("question", "display"),
    [
        ("Hull shops", SHOPS.format("Hull")),
        ("are there any shops in Hull?", SHOPS.format("Hull")),
        ("would there be any shops in Hull?", SHOPS.format("Hull")),
        ("Is there a list of shops in Hull?", SHOPS.format("Hull")),
        ("In York, how many shops are there?", COUNT.format("York")),
        ("at the Blue Door, who works?", STAFF.format("Blue Door")),
        ("size 400 shops", BAND.format(400)),
    ],
)
def test_another_order_and_quiet_words_are_no_difference(question: str, display: str) -> None:
    result = best(question, evidence(*PROVEN))
    assert (result.decision, result.display) == ("rebind", display)


@pytest.mark.parametrize(
    "question",
    [
        "shops without a bakery in Hull",
        "shops not in Hull",
        "the largest shops in Hull",
        "closed shops in Hull",
        "how many shops and towns are like Hull",
        "who works in Hull",
    ],
)
def test_words_that_change_the_meaning_are_refused(question: str) -> None:
    result = best(question, evidence(*PROVEN))
    assert result.decision == "refuse"
    assert result.reason


def test_one_proven_question_is_no_agreement() -> None:
    assert best("Hull shops to visit", evidence(PROVEN[0])).decision == "refuse"


def test_what_is_taken_out_no_longer_counts() -> None:
    known = evidence(*PROVEN)
    assert best("Hull shops", known).decision == "rebind"
    for place in (0, 1, 2):
        known.remove(place)
    PROVEN_OF[id(known)] = PROVEN_OF[id(known)][3:]
    assert best("Hull shops", known).decision == "refuse"


def test_a_number_that_stands_twice_in_the_sql_moves_when_two_questions_show_that_it_does() -> None:
    one = evidence(PROVEN[7])
    result = best("shops of size 400", one)
    assert (result.decision, result.gate) == ("refuse", "literals")
    assert "where “300” goes" in result.reason
    assert best("shops of size 400", evidence(*PROVEN[7:])).display == BAND.format(400)


def test_values_of_one_kind_need_the_same_words_beside_them() -> None:
    roads = "SELECT miles FROM road WHERE a = '{}' AND b = '{}'"
    known = Known({("road", "a"): ["Leeds", "York", "Bath", "Hull"], ("road", "b"): ["Leeds", "York", "Bath", "Hull"]})
    proven = [
        ProvenQuery(1, "how far is York by road from Leeds", roads.format("Leeds", "York"), NOW),
        ProvenQuery(2, "how far is Bath by road starting in Hull", roads.format("Hull", "Bath"), NOW),
        ProvenQuery(3, "by road starting in Leeds how far is Bath", roads.format("Leeds", "Bath"), NOW),
    ]
    made = Evidence("sqlite", known, proven)
    verdicts = choose(Question("starting in York how far is by road Hull", made.values, NOW), proven, evidence=made)
    shown = {verdict.display for verdict in verdicts if verdict.decision != "refuse"}
    assert shown <= {roads.format("York", "Hull")}


def test_other_spellings_of_the_same_sql_agree() -> None:
    known = evidence(
        ("shops in {Leeds}", SHOPS),
        ("shops to visit in {York}", "SELECT s.name FROM shop AS s WHERE '{}' = s.town"),
    )
    assert best("visit Hull shops", known).decision == "rebind"


def test_among_several_spellings_of_a_value_the_one_asked_with_is_taken() -> None:
    sql = "SELECT phone FROM staff WHERE name = '{}'"
    known = evidence(("phone of {Bob Ray}", sql), ("phone number of {Cy Moss}", sql))
    assert best("phone of Ann Lee", known).display == sql.format("Ann Lee")
    refused = best("phone of ANN LEE", known)
    assert (refused.decision, refused.gate) == ("refuse", "kind")


def test_a_majority_decides_and_a_dispute_does_not() -> None:
    wrong = "SELECT size FROM shop WHERE town = '{}'"
    towns = ["Leeds", "York", "Bath", "Hull"]
    agreed = [(f"list shops in {{{town}}}", SHOPS) for town in towns] + [("name shops in {Bath}", SHOPS)]
    assert best("Hull shops", evidence(*agreed, ("give shops in {York}", wrong))).decision == "rebind"
    assert best("Hull shops", evidence(*agreed[:2], ("give shops in {York}", wrong))).decision == "refuse"


@pytest.mark.parametrize(
    ("asked", "proven"),
    [
        ("is the shop in Hull?", "shops in {Leeds}"),
        ("is there a shop in Hull?", "shops in {Leeds}"),
        ("shops in Hull", "is the shop in {Leeds}?"),
        ("does Hull have shops", "which shops does {Leeds} have"),
    ],
)
def test_a_question_for_yes_or_no_is_not_one_for_a_list(asked: str, proven: str) -> None:
    given = best(asked, evidence((proven, SHOPS)))
    assert (given.decision, given.gate) == ("refuse", "form")


@pytest.mark.parametrize("asked", ["are there any shops in Hull?", "can you show me the shops in Hull?"])
def test_a_polite_request_is_no_question_for_yes_or_no(asked: str) -> None:
    assert best(asked, evidence(("shops in {Leeds}", SHOPS))).decision == "rebind"


TOWNS = ("Leeds", "York", "Bath", "Hull")
WRONG = "SELECT name FROM shop WHERE town <> '{}'"


def disputed(*said: tuple[str, str, str]) -> list[Verdict]:
    """The verdicts on "shops in Bath" after (author, town, SQL) were proven."""
    proven = [
        ProvenQuery(place, f"shops in {town}", sql.format(town), NOW, frozenset((author,)))
        for place, (author, town, sql) in enumerate(said)
    ]
    return choose(Question("shops in Bath", VALUES, NOW), proven, evidence=Evidence("sqlite", VALUES, proven))


def used(verdicts: list[Verdict]) -> set[str | None]:
    return {verdict.display for verdict in verdicts if verdict.decision != "refuse"}


def test_one_author_who_proves_much_does_not_win_a_dispute() -> None:
    hostile = [("eve", town, WRONG) for town in TOWNS * 10]
    verdicts = disputed(("ann", "Leeds", SHOPS), *hostile)
    assert used(verdicts) == set()
    assert {verdict.gate for verdict in verdicts} == {"conflict"}


def test_many_authors_win_a_dispute_against_one() -> None:
    hostile = [("eve", town, WRONG) for town in TOWNS * 10]
    honest = [(author, town, SHOPS) for author, town in zip(("ann", "bo", "cy", "di"), TOWNS, strict=True)]
    assert used(disputed(*honest, *hostile)) == {SHOPS.format("Bath")}


def test_one_author_who_proves_much_does_not_win_an_agreement() -> None:
    said = [("eve", f"{words} in {town}", WRONG) for words in ("shops open", "open shops to visit") for town in TOWNS]
    said += [
        ("ann", "open shops that you can visit in Leeds", SHOPS),
        ("ann", "open shops one may visit in York", SHOPS),
    ]
    proven = [
        ProvenQuery(place, question, sql.format(question.split()[-1]), NOW, frozenset((author,)))
        for place, (author, question, sql) in enumerate(said)
    ]
    made = Evidence("sqlite", VALUES, proven)
    asked = Question("visit open Hull shops", VALUES, NOW)
    assert used(choose(asked, proven, evidence=made)) == set()
    alone = Evidence("sqlite", VALUES, proven[:8])
    assert used(choose(asked, proven[:8], evidence=alone)) == {WRONG.format("Hull")}


@pytest.mark.parametrize(
    ("authors", "decision"),
    [("eve eve eve", "rebind"), ("eve eve eve ann", "refuse"), ("eve ann eve ann", "rebind")],
)
def test_one_author_among_several_does_not_settle_what_an_ambiguous_value_means(authors: str, decision: str) -> None:
    sql = "SELECT size FROM shop WHERE name = '{}'"
    known = Known({**NAMES, ("dish", "name"): ["soup", "Old Mill"]})
    said = [*[(f"size of {name}", sql.format(name)) for name in NAMES["shop", "name"][:3]], ("how many", "SELECT 1")]
    proven = [
        ProvenQuery(place, question, text, NOW, frozenset((author,)))
        for place, ((question, text), author) in enumerate(zip(said, authors.split(), strict=False))
    ]
    made = Evidence("sqlite", known, proven)
    verdicts = choose(Question("size of Old Mill", made.values, NOW), proven, evidence=made)
    assert verdicts[0].decision == decision
    assert decision == "rebind" or verdicts[0].gate == "kind"


NAMES = {("shop", "name"): ["Red Barn", "Blue Door", "Grey Gate", "Old Mill"]}


@pytest.mark.parametrize("asked", ["which shops are in the town of Hull", "shops to visit in Hull town"])
def test_what_a_value_is_called_adds_nothing_to_it(asked: str) -> None:
    assert best(asked, evidence(*PROVEN)).display == SHOPS.format("Hull")


@pytest.mark.parametrize("asked", ["which towns are like Hull", "the town of the shops in Hull"])
def test_what_is_asked_for_is_not_dropped_as_the_name_of_a_value(asked: str) -> None:
    assert best(asked, evidence(*PROVEN)).decision == "refuse"


def test_what_is_counted_must_not_differ_among_what_is_near() -> None:
    other = COUNT.replace("*", "size")
    rows = [row for row in PROVEN if row[1] == COUNT]
    asked = "the number of shops open in York"
    assert best(asked, evidence(*rows)).decision == "rebind"
    assert best(asked, evidence(*rows, ("how many shops {Bath} has", other))).decision == "refuse"


def test_nothing_is_suggested_that_returns_what_only_the_proven_question_names() -> None:
    known = evidence(("what is the total size of all shops", "SELECT SUM(size) FROM shop"))
    question = Question("what is the total rent of all shops", VALUES, NOW)
    verdicts = choose(question, PROVEN_OF[id(known)], evidence=known)
    assert [verdict.suggested for verdict in verdicts] == [None]


@pytest.mark.parametrize("asked", ["planes to Hull and back", "I would like to know the cost of planes to Hull"])
def test_words_that_add_to_what_is_asked_are_never_optional(asked: str) -> None:
    """Although three other queries are proven with and without them."""
    town = ["Leeds", "York", "Bath", "Hull"]
    known = Known({("route", "town"): town}, [("route", "cost")])
    rows = [
        (question.format(vehicle, place), f"SELECT {vehicle} FROM route WHERE town = '{place}'")
        for vehicle in ("trains", "buses", "ferries")
        for question, place in zip(
            ("{} to {}", "{} to {}", "{} to {}", "{} to {} and back", "the cost of {} to {}"),
            (*town, "Leeds"),
            strict=True,
        )
    ]
    rows += [(f"planes to {place}", f"SELECT planes FROM route WHERE town = '{place}'") for place in town[:3]]
    proven = [ProvenQuery(place, question, sql, NOW) for place, (question, sql) in enumerate(rows)]
    made = Evidence("sqlite", known, proven)
    verdicts = choose(Question(asked, known, NOW), proven, evidence=made)
    assert {verdict.decision for verdict in verdicts} == {"refuse"}


@pytest.mark.parametrize(
    ("towns", "decision"), [("York Bath Leeds York", "rebind"), ("York Bath York Bath", "refuse")], ids=["three", "two"]
)
def test_three_values_settle_an_ambiguous_one_in_words_that_mean_the_same(towns: str, decision: str) -> None:
    # "Hull" is a town, and the name of a dish.
    known = Known({**NAMES, ("shop", "town"): list(TOWNS), ("dish", "name"): ["soup", "Hull"]})
    words = ["to visit", "to visit", "that you can visit", "one may visit"]
    proven = [
        ProvenQuery(place, f"open shops {said} in {town}", SHOPS.format(town), NOW, frozenset((author,)))
        for place, (said, town, author) in enumerate(zip(words, towns.split(), "abcd", strict=True))
    ]
    made = Evidence("sqlite", known, proven)
    verdict = choose(Question("visit open Hull shops", made.values, NOW), proven, evidence=made)[0]
    assert verdict.decision == decision
    assert decision == "rebind" or verdict.gate == "kind"
