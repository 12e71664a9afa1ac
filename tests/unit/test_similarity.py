import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.same_question import (
    DIFFERENT_NEED,
    MINILM,
    SAME_NEED,
    WORDLLAMA,
    Calibration,
    difference,
    similarity,
)

# Cosines are those of all-MiniLM-L6-v2.
DIFFERENT = [
    ("What were sales in 2023?", "What were sales in 2024?", 0.946, "numbers differ: 2023 / 2024"),
    ("invoices over 1,000 dollars", "invoices over 10,000 dollars", 0.953, "numbers differ: 1000 / 10000"),
    ("How do I upgrade to Python 3.11?", "How do I upgrade to Python 3.12?", 0.856, "numbers differ: 3.11 / 3.12"),
    ("revenue for Q3", "revenue for Q4", 0.848, "numbers differ: 3 / 4"),
    ("the top five customers", "the top 10 customers", 0.94, "numbers differ: 5 / 10"),
    ('find status "open"', 'find status "pending"', 0.9, "quoted texts differ: open / pending"),
    ("orders placed before June", "orders placed after June", 0.977, "words differ: before / after"),
    ("employees hired in March", "employees hired in April", 0.843, "words differ: march / april"),
    ("Who is on call on Monday?", "Who is on call on Tuesday?", 0.948, "words differ: monday / tuesday"),
    ("the largest city in Spain", "the smallest city in Spain", 0.824, "words differ: largest / smallest"),
    ("How do I enable alerts?", "How do I disable alerts?", 0.884, "words differ: enable / disable"),
    ("Which prices increased?", "Which prices decreased?", 0.854, "words differ: increase / decrease"),
    ("the average salary", "the total salary", 0.913, "words differ: average / total"),
    ("Who founded Acme?", "When was Acme founded?", 0.96, "words differ: who / when"),
    ("When is the indoor pool open?", "When is the outdoor pool open?", 0.93, "words differ: indoor / outdoor"),
    ("How do I downgrade?", "How do I upgrade?", 0.9, "words differ: downgrade / upgrade"),
    ("What does a bicycle cost per day?", "What does a bicycle cost per week?", 0.92, "words differ: day / week"),
    ("When is check-in?", "When is check-out?", 0.9, "words differ: check-in / check-out"),
    ("What do adults pay?", "What do children pay?", 0.9, "words differ: adult / child"),
    ("How do I lock my account?", "How do I unlock my account?", 0.818, "words differ: lock / unlock"),
    ("count of active users", "count of inactive users", 0.88, "words differ: active / inactive"),
    ("hotels with a pool", "hotels without a pool", 0.887, "only one is negated"),
    ("Is it available in Canada?", "Is it not available in Canada?", 0.958, "only one is negated"),
    ("Which suppliers deliver here?", "Which suppliers don't deliver here?", 0.9, "only one is negated"),
    ("flights from Paris to Rome", "flights from Rome to Paris", 0.999, "order differs: paris, rome"),
    ("How do I convert JSON to CSV?", "How do I convert CSV to JSON?", 0.995, "order differs: json, csv"),
    ("Is Python faster than Java?", "Is Java faster than Python?", 0.993, "order differs: python, java"),
    ("Who is the CEO?", "Who is the CFO?", 0.574, "names differ: CEO / CFO"),
    ("How do I deploy to AWS?", "How do I deploy to GCP?", 0.9, "names differ: AWS / GCP"),
    ("the deadline of the Berlin office", "the deadline of the Munich office", 0.834, "names differ: Berlin / Munich"),
    ("the salary of a Java developer", "the salary of a JavaScript developer", 0.9, "names differ: Java / JavaScript"),
]
SAME = [
    ("Who is the CEO?", "Who is the chief executive?", 0.819),
    ("Who is the CEO?", "Who is the Chief Executive Officer?", 0.9),
    ("Who is the VP of Sales?", "Who is the vice president of sales?", 0.9),
    ("Do I need a visa for the US?", "Do I need a visa for the United States?", 0.985),
    ("What is the JS equivalent of a list?", "What is the JavaScript equivalent of a list?", 0.962),
    ("Connect to a PostgreSQL database", "Connect to a Postgres database", 0.991),
    ("What is the WiFi password?", "What's the password for the Wi-Fi?", 0.96),
    ("flights from Paris to Rome", "flights to Rome from Paris", 0.993),
    ("What's the difference between TCP and UDP?", "What is the difference between UDP and TCP?", 0.996),
    ("Which is better, React or Vue?", "Is Vue or React better?", 0.97),
    ("How do I sort a list in Python?", "In Python, how can I sort a list?", 0.994),
    ("Why can't I log in?", "Why am I unable to log in?", 0.978),
    ("Why isn’t my login working?", "Why is my login failing?", 0.878),
    ("Is Python faster than Java or not?", "Is Python faster than Java?", 0.993),
    ("What is the largest city in Spain?", "What is Spain's biggest city?", 0.974),
    ("merge two dictionaries", "merge 2 dictionaries", 0.9),
    ("invoices over 1,000 dollars", "invoices over $1000", 0.945),
    ("laptops under 30k", "laptops under 30,000", 0.9),
    ('What does "disk full" mean?', "What is the meaning of disk full?", 0.961),
    ("what time does the store open", "When does the store open?", 0.917),
    ("How do I undo the last commit?", "How can I revert the latest commit?", 0.901),
    ("Wo steht das Auto?", "Wo steht der Wagen?", 0.9),
    ("¿Cómo cambio mi contraseña?", "¿Cómo puedo cambiar la contraseña?", 0.9),
    ("如何重置密码", "怎么重设密码", 0.9),
]

queries = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "who",
                "is",
                "the",
                "CEO",
                "chief",
                "executive",
                "officer",
                "CFO",
                "not",
                "without",
                "can't",
                "from",
                "Paris",
                "to",
                "Rome",
                "than",
                "Java",
                "2023",
                "2,024",
                "two",
                "before",
                "after",
                "lock",
                "unlock",
                "largest",
                "smallest",
                '"open"',
                "and",
                "or",
                "I",
                "it",
                "?",
                ".",
                ",",
            ]
        ),
        max_size=10,
    ).map(" ".join),
)
cosines = st.floats(min_value=-1.01, max_value=1.01)
calibrations = st.sampled_from([MINILM, WORDLLAMA])


@pytest.mark.parametrize(("a", "b", "cosine", "reason"), DIFFERENT)
def test_a_difference_keeps_two_queries_apart(a: str, b: str, cosine: float, reason: str) -> None:
    assert difference(a, b) == reason
    assert similarity(a, b, cosine) <= DIFFERENT_NEED < SAME_NEED
    assert similarity(a, b, 0.999) == similarity(b, a, 0.999) == DIFFERENT_NEED


@pytest.mark.parametrize(("a", "b", "cosine"), SAME)
def test_paraphrases_are_one_question(a: str, b: str, cosine: float) -> None:
    assert difference(a, b) is difference(b, a) is None
    assert similarity(a, b, cosine) >= SAME_NEED


def test_the_roles_of_two_chiefs_stay_well_apart() -> None:
    assert similarity("who is the ceo", "who is the cfo", 0.574) < 0.5


@pytest.mark.parametrize("other", ["Who is the CEO?", "who is the ceo", "  WHO is\tthe CEO ? ", "Who is the CEO?!"])
def test_case_spacing_and_closing_punctuation_do_not_count(other: str) -> None:
    assert similarity("Who is the CEO?", other, 0.2) == 1.0


@pytest.mark.parametrize("calibration", [MINILM, WORDLLAMA])
def test_the_scale_meets_its_marks_without_a_jump(calibration: Calibration) -> None:
    floor, same = calibration
    marks = [(-1.0, 0.0), (floor, 0.0), (same, SAME_NEED), (1.0, 1.0), (1.0000002, 1.0)]
    for cosine, value in marks:
        assert similarity("alpha", "beta", cosine, calibration=calibration) == pytest.approx(value)
    for mark in (floor, same):
        below, above = (similarity("alpha", "beta", mark + d, calibration=calibration) for d in (-1e-9, 1e-9))
        assert above == pytest.approx(below, abs=1e-6)


def test_no_cosine_is_no_similarity() -> None:
    assert similarity("alpha", "", math.nan) == 0.0


@given(queries, queries, cosines, calibrations)
def test_symmetric_and_bounded(a: str, b: str, cosine: float, calibration: Calibration) -> None:
    value = similarity(a, b, cosine, calibration=calibration)
    assert 0.0 <= value <= 1.0
    assert value == similarity(b, a, cosine, calibration=calibration)
    assert (difference(a, b) is None) == (difference(b, a) is None)


@given(queries, queries, cosines, cosines, calibrations)
def test_more_cosine_is_never_less_similarity(a: str, b: str, x: float, y: float, calibration: Calibration) -> None:
    low, high = sorted((x, y))
    assert similarity(a, b, low, calibration=calibration) <= similarity(a, b, high, calibration=calibration)


@given(queries, cosines)
def test_a_query_is_itself(a: str, cosine: float) -> None:
    assert similarity(a, a, cosine) == 1.0
    assert difference(a, f"  {a} ") is None
