from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.memory.documents import MAX_PIECE, split

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
