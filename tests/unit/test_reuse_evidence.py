"""What proven questions teach about each other."""

from datetime import datetime

from heedful.sql.reuse.decision import Question, choose, same_frame_ids
from heedful.sql.reuse.evidence import Evidence
from heedful.sql.reuse.reasons import Verdict
from heedful.sql.reuse.study import ProvenQuery
from heedful.sql.reuse.values import Known

NOW = datetime(2024, 5, 10)
STATES = ["texas", "ohio", "maine", "iowa", "utah", "new york"]
VALUES = Known(
    {
        ("state", "name"): STATES,
        ("border", "state"): STATES,
        ("city", "state"): STATES,
        ("city", "name"): ["austin", "boston", "dallas", "chicago", "miami", "denver", "new york"],
    }
)
BORDER = "SELECT other FROM border WHERE state = '{}'"
CITIES = "SELECT name FROM city WHERE state = '{}'"
POPULATION_OF_STATE = "SELECT population FROM state WHERE name = '{}'"
POPULATION_OF_CITY = "SELECT population FROM city WHERE name = '{}'"


def evidence(*rows: tuple[str, str]) -> tuple[Evidence, list[ProvenQuery]]:
    """Each row is a question with its value in braces, and the SQL that the value goes into."""
    proven = []
    for place, (question, sql) in enumerate(rows):
        value = question[question.index("{") + 1 : question.index("}")] if "{" in question else ""
        proven.append(ProvenQuery(place, question.replace("{", "").replace("}", ""), sql.format(value), NOW))
    return Evidence("sqlite", VALUES, proven), proven


def best(asked: str, known: Evidence, proven: list[ProvenQuery]) -> Verdict:
    verdicts = choose(Question(asked, known.values, NOW), proven, evidence=known)
    return min(verdicts, key=lambda verdict: ["serve", "rebind", "refuse"].index(verdict.decision))


ADJOIN = [
    ("which states border {texas}", BORDER),
    ("which states adjoin {texas}", BORDER),
    ("how many states border {ohio}", "SELECT COUNT(other) FROM border WHERE state = '{}'"),
    ("how many states adjoin {ohio}", "SELECT COUNT(other) FROM border WHERE state = '{}'"),
]


def test_words_that_two_templates_use_alike_are_interchangeable() -> None:
    known, proven = evidence(*ADJOIN, ("capitals of states that border {utah}", "SELECT capital FROM border"))
    result = best("capitals of states that adjoin utah", known, proven)
    assert (result.decision, result.gate) == ("serve", "same")
    assert result.reason == "Other proven questions show that “adjoin” means “border”."
    assert [(each.kind, each.asked, each.proven) for each in result.differences] == [("learned", "adjoin", "border")]


def test_learned_words_and_other_values_may_come_together() -> None:
    known, proven = evidence(*ADJOIN, ("give me neighbours that border {utah}", BORDER))
    result = best("give me neighbours that adjoin iowa", known, proven)
    assert (result.decision, result.parameters) == ("rebind", {"p1": "iowa"})


def test_one_author_alone_teaches_no_words_where_there_are_others() -> None:
    asked = "capitals of states that adjoin utah"
    _, proven = evidence(*ADJOIN, ("capitals of states that border {utah}", "SELECT capital FROM border"))
    for authors, decision in [("eeeea", "refuse"), ("eaeaa", "serve"), ("eeeee", "serve")]:
        said = [each._replace(authors=frozenset((who,))) for each, who in zip(proven, authors, strict=True)]
        known = Evidence("sqlite", VALUES, said)
        assert best(asked, known, said).decision == decision, authors
        for each in said:
            known.remove(each.id)
            known.add(each)
        assert best(asked, known, said).decision == decision, authors


def test_one_witness_is_not_enough() -> None:
    known, proven = evidence(*ADJOIN[:2], ("capitals of states that border {utah}", "SELECT capital FROM border"))
    assert best("capitals of states that adjoin utah", known, proven).decision == "refuse"


def test_one_pair_with_different_sql_speaks_against_exchanging_words() -> None:
    known, proven = evidence(
        *ADJOIN,
        ("rivers that border {maine}", "SELECT 1 FROM border WHERE state = '{}'"),
        ("rivers that adjoin {maine}", "SELECT 2 FROM border WHERE state = '{}'"),
        ("capitals of states that border {utah}", "SELECT capital FROM border"),
    )
    assert best("capitals of states that adjoin utah", known, proven).decision == "refuse"


def test_opposites_are_not_learned_whatever_the_evidence() -> None:
    known, proven = evidence(
        ("the largest of {texas}", BORDER),
        ("the smallest of {texas}", BORDER),
        ("the largest in area of {ohio}", CITIES),
        ("the smallest in area of {ohio}", CITIES),
        ("rivers of the largest city", "SELECT 1"),
    )
    assert best("rivers of the smallest city", known, proven).gate == "operators"


def test_words_that_compare_are_learned_only_within_their_own_sql() -> None:
    rows = [
        ("state with the most people", "SELECT 1"),
        ("state with the largest people", "SELECT 1"),
        ("town with the most people", "SELECT 2"),
        ("town with the largest people", "SELECT 2"),
        ("state with the largest city", "SELECT 3"),
    ]
    known, proven = evidence(*rows)
    assert best("state with the most city", known, proven).decision == "refuse"


def test_a_value_of_two_kinds_is_refused_where_both_are_asked_for() -> None:
    known, proven = evidence(
        *[(f"population of {{{state}}}", POPULATION_OF_STATE) for state in ("texas", "ohio", "maine")],
        *[(f"population of {{{city}}}", POPULATION_OF_CITY) for city in ("austin", "boston", "dallas")],
    )
    assert best("population of new york", known, proven).gate in ("conflict", "kind")
    assert best("population of iowa", known, proven).parameters == {"p1": "iowa"}
    assert best("population of miami", known, proven).decision == "rebind"


def test_a_frame_that_always_meant_one_kind_settles_an_ambiguous_value() -> None:
    rows = [(f"which states border {{{state}}}", BORDER) for state in ("texas", "ohio", "maine")]
    known, proven = evidence(*rows)
    assert best("which states border new york", known, proven).parameters == {"p1": "new york"}
    known, proven = evidence(*rows[:2])
    assert best("which states border new york", known, proven).gate == "kind"


def test_proven_questions_with_the_same_words_and_different_sql_refuse_each_other() -> None:
    known, proven = evidence(("the capital of {texas}", BORDER), ("what is the capital of {ohio}", CITIES))
    result = best("capital of iowa", known, proven)
    assert (result.decision, result.gate) == ("refuse", "conflict")


def test_a_question_alike_in_all_but_its_value_is_found_without_similarity() -> None:
    known, proven = evidence(("which states border {texas}", BORDER), ("name the cities of {ohio}", CITIES))
    assert same_frame_ids(Question("what states border maine?", known.values, NOW), known) == [proven[0].id]
    assert same_frame_ids(Question("which lakes are in maine", known.values, NOW), known) == []


def test_the_proven_question_with_the_same_value_is_found_first() -> None:
    known, proven = evidence(("which states border {texas}", BORDER), ("what states border {ohio}", BORDER))
    assert same_frame_ids(Question("give me the states that border ohio", known.values, NOW), known)[0] == proven[1].id


def test_what_is_removed_leaves_no_trace() -> None:
    known, proven = evidence(*ADJOIN, ("capitals of states that border {utah}", "SELECT capital FROM border"))
    for each in proven[2:4]:
        known.remove(each.id)
    assert best("capitals of states that adjoin utah", known, [proven[4]]).decision == "refuse"
    for each in proven[2:4]:
        known.add(each)
    assert best("capitals of states that adjoin utah", known, [proven[4]]).decision == "serve"
    for each in proven:
        known.remove(each.id)
    assert same_frame_ids(Question("which states border texas", known.values, NOW), known) == []


def test_only_the_first_refusals_are_explained() -> None:
    known, proven = evidence(("the rivers of {texas}", BORDER), ("the lakes of {texas}", CITIES))
    first, second = choose(Question("the shops of texas", known.values, NOW), proven, evidence=known, explained=1)
    assert "river" in first.reason
    assert (second.decision, second.differences) == ("refuse", ())
