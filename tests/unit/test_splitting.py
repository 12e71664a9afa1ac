from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.memory.documents import MAX_PIECE, is_list, split, split_file

texts = st.one_of(
    st.text(max_size=400),
    st.lists(
        st.sampled_from(
            ["# Title\n", "## Part\n", "A sentence.", "Why? ", "word ", "\n\n", "\n", " ", "“Yes.” ", "。"]
        ),
        max_size=60,
    ).map("".join),
)
lengths = st.integers(1, 80)


@given(texts, lengths)
def test_a_piece_is_what_stands_at_its_position(text: str, longest: int) -> None:
    for piece in split(text, longest):
        assert text[piece.start : piece.stop] == piece.text


@given(texts, lengths)
def test_pieces_are_trimmed_not_empty_and_not_too_long(text: str, longest: int) -> None:
    for piece in split(text, longest):
        assert piece.text
        assert piece.text == piece.text.strip()
        assert len(piece.text) <= longest


@given(texts, lengths)
def test_nothing_but_white_space_is_lost_and_nothing_is_said_twice(text: str, longest: int) -> None:
    end = 0
    for piece in split(text, longest):
        assert piece.start >= end
        assert not text[end : piece.start].strip()
        end = piece.stop
    assert not text[end:].strip()


@given(texts)
def test_a_short_text_is_one_piece(text: str) -> None:
    pieces = split(text, 1000)
    assert [piece.text for piece in pieces] == ([text.strip()] if text.strip() else [])


def test_a_text_is_cut_at_its_headings() -> None:
    text = "# One\nFirst words here.\n\n# Two\nOther words here.\n\n## Three\nLast words here."
    assert [piece.text for piece in split(text, 40)] == [
        "# One\nFirst words here.",
        "# Two\nOther words here.",
        "## Three\nLast words here.",
    ]


def test_a_hash_inside_a_line_is_no_heading() -> None:
    text = "issue # 1 is open and issue # 2 is not. More."
    assert [piece.text for piece in split(text, 40)] == ["issue # 1 is open and issue # 2 is not.", "More."]


def test_a_paragraph_is_kept_whole_when_it_fits() -> None:
    text = "One. Two. Three.\n\nFour. Five. Six."
    assert [piece.text for piece in split(text, 20)] == ["One. Two. Three.", "Four. Five. Six."]


def test_a_sentence_is_kept_whole_when_it_fits() -> None:
    text = "The first sentence. The second one! Is this the third? Yes."
    assert [piece.text for piece in split(text, 25)] == [
        "The first sentence.",
        "The second one!",
        "Is this the third? Yes.",
    ]


def test_a_closing_quote_stays_with_its_sentence() -> None:
    assert [piece.text for piece in split('He said "stop." Then he left.', 16)] == ['He said "stop."', "Then he left."]


def test_a_long_sentence_is_cut_between_words() -> None:
    assert [piece.text for piece in split("alpha beta gamma delta", 11)] == ["alpha beta", "gamma delta"]


def test_a_long_word_is_cut_anyway() -> None:
    assert [piece.text for piece in split("a" * 25, 10)] == ["a" * 10, "a" * 10, "a" * 5]


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_a_blank_text_has_no_pieces(text: str) -> None:
    assert split(text) == []


def test_the_default_limit_holds() -> None:
    pieces = split("A sentence of some length, repeated. " * 200)
    assert len(pieces) > 1
    assert all(len(piece.text) <= MAX_PIECE for piece in pieces)


@given(texts)
def test_facts_of_a_file_stand_at_their_positions_and_lose_no_word(text: str) -> None:
    end = 0
    for piece in split_file(text):
        assert text[piece.start : piece.stop] == piece.text
        assert len(piece.text) <= MAX_PIECE
        assert not any(character.isalnum() for character in text[end : piece.start])
        end = piece.stop
    assert not any(character.isalnum() for character in text[end:])


@pytest.mark.parametrize(
    "text",
    [
        "The CEO is Ada.\nRefunds take 14 days.\nBerlin.",
        "the ceo is ada\nrefunds take 14 days",
        "- The CEO is Ada\n- Refunds take 14 days, without shipping\n",
        "Opening hours: 9 to 5\r\nPhone: 030 123456\r\n",
        "A line of a whole paragraph, as many editors write it, with one sentence. And another.\nThe next paragraph.",
    ],
)
def test_complete_lines_are_a_list(text: str) -> None:
    assert is_list(text)
    assert [piece.text for piece in split_file(text)] == text.splitlines()


@pytest.mark.parametrize(
    "text",
    [
        "One fact.",
        "The CEO is Ada.\n\nRefunds take 14 days.",
        "# Staff\nThe CEO is Ada.",
        "The refund is paid after the goods have come\nback to us, and then within 14 days.",
        "Der Vertrag gilt vom ersten Tag des Monats an\nAda und Bo. Er endet am Montag nach\nOstersonntag.",
        "We are closed on:\nMonday\nTuesday",
        "def f():\n    return 1",
        "| a | b |\n| 1 | 2 |",
    ],
)
def test_what_goes_on_in_the_next_line_is_no_list(text: str) -> None:
    assert not is_list(text)


def test_paragraphs_keep_what_belongs_to_them() -> None:
    text = (
        "# Guide\n\n## Start\n\nRun this:\n\n```sh\nmake\n\nmake test\n```\n\n"
        "It prints\na table.\n\n| a |\n| 1 |\n\n---\n\nBye."
    )
    assert [piece.text for piece in split_file(text)] == [
        "# Guide\n\n## Start\n\nRun this:\n\n```sh\nmake\n\nmake test\n```",
        "It prints\na table.\n\n| a |\n| 1 |",
        "Bye.",
    ]


def test_blank_lines_do_not_part_what_belongs_together_however_many_there_are() -> None:
    assert [piece.text for piece in split_file("Prices:\n\n\n\n9 euros.\n\n\n\n| a |\n\n\nBye.")] == [
        "Prices:\n\n\n\n9 euros.\n\n\n\n| a |",
        "Bye.",
    ]


def test_a_file_of_blank_lines_is_split_in_a_moment() -> None:
    assert [piece.text for piece in split_file("x" + "\n" * 300_000 + "|y")][-1][-2:] == "|y"
