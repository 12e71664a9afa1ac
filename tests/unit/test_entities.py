from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.entities import MAX_KEY, entities, entity, mentions


def names(text: str) -> list[str]:
    return [each.name for each in entities(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("She met Grace Hopper in New York City.", ["Grace Hopper", "New York City"]),
        ("a bust of Ludwig van Beethoven", ["Ludwig van Beethoven"]),
        ("the Bank of England and the University of the Arts", ["Bank of England", "University of the Arts"]),
        ("books by J. R. R. Tolkien and George R. R. Martin", ["J. R. R. Tolkien", "George R. R. Martin"]),
        ("we asked Dr. Watson and Mrs. Hudson", ["Watson", "Hudson"]),
        ("on board Apollo 11 again", ["Apollo 11"]),
        ("Ada's desk and O'Brien’s chair", ["Ada", "O'Brien"]),
        ("Ada's Rome trip", ["Ada", "Rome"]),
        ("people from NASA", ["NASA"]),
        ("in Österreich und Šibenik", ["Österreich", "Šibenik"]),
        ("здесь живёт Анна Каренина", ["Анна Каренина"]),
    ],
)
def test_names_are_runs_of_words_with_capitals(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ada leads sales.", ["Ada"]),
        ("Caroline: how are you?", ["Caroline"]),
        ("It rained. Turing stayed at home.", ["Turing"]),
        ("Rome", ["Rome"]),
        ("Check it out. Seeing you was fun. Plus, it rained.", []),
        ("Yesterday I saw Ada. The next day, too.", ["Ada"]),
        ("Hey Mel! Don't worry, it'll pass. It'll be Monday soon.", ["Mel"]),
        ("Pottery calms me, and pottery is cheap.", []),
    ],
)
def test_a_word_that_opens_a_sentence_is_no_name_for_that(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('he read "The Long Walk" twice', ["The Long Walk"]),
        ("they saw „Das Boot“ and «Le Havre»", ["Das Boot", "Le Havre"]),
        ("彼は「吾輩は猫である」を読んだ", ["吾輩は猫である"]),
        ('then Ada said, "I like it," and left', ["Ada"]),
    ],
)
def test_quoted_titles_are_one_thing_and_speech_is_not(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("issue #4711 and invoice INV-2023-001", ["#4711", "INV-2023-001"]),
        ("an RTX-4090 from 2023, with v1.2.3", ["RTX-4090", "2023", "v1.2.3"]),
        ("order 48213 of 2023-05-07", ["48213", "2023-05-07"]),
        ("at 10:30 she paid 1,000 euros for 20kg, on the 1st, as in the 1990s", []),
    ],
)
def test_digits_that_identify_count_and_amounts_do_not(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("write to ops@example.com.", ["ops@example.com"]),
        ("see https://example.com/a?b=1, or www.example.org.", ["https://example.com/a?b=1", "www.example.org"]),
        ("call parse_date() in src/app/main.py", ["parse_date", "src/app/main.py"]),
        ("a std::vector and `x`, `yy` or fooBar", ["std::vector", "yy", "fooBar"]),
        ("he/she and/or they", []),
    ],
)
def test_addresses_and_identifiers_are_found(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_a_thing_is_found_once_however_it_is_written() -> None:
    assert [
        (each.key, each.name) for each in entities("to NASA, then Nasa,\nwhere ADA LOVELACE met Ada  Lovelace")
    ] == [
        ("nasa", "NASA"),
        ("ada lovelace", "ADA LOVELACE"),
        ("ada", "Ada"),
        ("lovelace", "Lovelace"),
    ]


@pytest.mark.parametrize(
    "piece", ["a-", "a.", "a_", "a", "A", "A ", "Ab ", "A.", "a@", "1,", "1-", "a/", "::a", '"', "'s ", "of "]
)
def test_a_long_text_of_one_sort_is_read_to_its_end(piece: str) -> None:
    assert names(piece * 30_000 + "\n\nby Ada Lovelace")[-1] == "Ada Lovelace"


def test_shouting_names_nobody() -> None:
    assert names("so PLEASE DO NEVER WALK ON MY NEW GREEN LAWN BESIDE THE ROAD") == []


def test_a_query_names_things_in_any_case() -> None:
    found = mentions("what does ada lovelace's ops@example.com say of the bank of england and #4711")
    assert {"ada lovelace", "ada", "ops@example.com", "bank of england", "#4711"} <= set(found)
    assert "what" not in found


def test_names_found_by_others_are_made_comparable() -> None:
    assert entity("  Ada\n Lovelace ") == ("ada lovelace", "Ada Lovelace")
    assert entity(" \t") is None


@given(st.text() | st.text(alphabet="Aa.'’-\"“”«»`_:/@#1 \n", max_size=300))
def test_any_text_is_read_the_same_way_twice(text: str) -> None:
    found = entities(text)
    assert found == entities(text)
    keys = [each.key for each in found]
    assert len(keys) == len(set(keys))
    for each in found:
        assert 0 < len(each.key) <= MAX_KEY
        assert each.key == " ".join(each.name.casefold().split())[:MAX_KEY].strip()
    assert all(mentions(text))
