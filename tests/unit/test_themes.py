"""What comments are about: groups that hold what means the same, named by their own words."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Invalid
from heedful.providers.embedding import Embedder
from heedful.testing import WordEmbedder
from heedful.text.themes import (
    MAX_NAME,
    Group,
    Namer,
    Theme,
    Vectors,
    divided,
    english,
    groups,
    shortened,
    terms,
    themes,
)

REFUNDS = [
    "My refund never arrived",
    "I am still waiting for my refund after three weeks",
    "The refund took far too long",
    "it says refunds take 5 days but mine is late",
    "the refund is late again",
    "You promised a refund and nothing came",
    "where is my money back??",
]
SLOW = [
    "too slow",
    "so slow, I waited a minute for a reply",
    "The answer took forever to load",
    "It takes ages until it answers",
    "the chat is really slow since yesterday",
]
PRICES = [
    "The price is wrong, it costs 49 not 39",
    "wrong price for the Pro plan",
    "Prices do not match the website",
    "pricing is incorrect for annual plans",
    "it told me the wrong price",
]
LANGUAGE = [
    "I asked in German and it answered in English",
    "please answer in my language",
    "Why does it reply in English when I write Spanish?",
    "replied in the wrong language again",
]
OTHERS = ["I love the new logo", "my cat walked over the keyboard", "What about students?", "Can you call me tomorrow?"]
GERMAN_REFUNDS = [
    "Die Erstattung ist immer noch nicht da",
    "Ich warte seit Wochen auf meine Erstattung",
    "Wo bleibt die Erstattung?",
    "Die Erstattung dauert viel zu lange",
]
GERMAN_PRICES = [
    "Der Preis ist falsch",
    "falscher Preis für den Tarif",
    "Der Preis stimmt nicht mit der Webseite überein",
]
SPANISH_REFUNDS = ["El reembolso no ha llegado", "Sigo esperando mi reembolso", "El reembolso tarda demasiado"]
SPANISH_PRICES = ["El precio es incorrecto", "precio equivocado", "El precio no coincide con la web"]
RUSSIAN_REFUNDS = [
    "Возврат денег так и не пришёл",
    "Жду возврат уже три недели",
    "Возврат денег слишком долгий",
    "Где мой возврат денег?",
]
RUSSIAN_SLOW = ["Очень медленно отвечает", "Слишком медленно", "Ответ приходит очень медленно", "медленно работает"]

Found = list[tuple[str, set[str]]]


def found_themes(embedder: Embedder, *topics: list[str]) -> Found:
    """The name and the comments of each theme that is found in some topics, shuffled."""
    texts = [text for topic in topics for text in topic]
    Random(1).shuffle(texts)
    return [(theme.name, {texts[member] for member in theme.members}) for theme in themes(texts, embedder.embed(texts))]


def along(axes: Sequence[int], dimensions: int = 4) -> Vectors:
    """Vectors that are equal or have nothing in common."""
    return np.eye(dimensions, dtype=np.float32)[list(axes)]


class TestWithTheBundledModel:
    def test_english_comments_are_grouped_by_their_matter(self, bundled: Embedder) -> None:
        found = found_themes(bundled, REFUNDS, SLOW, PRICES, LANGUAGE, OTHERS)
        assert [group for _, group in found] == [
            set(REFUNDS),
            *map(set, sorted_by_name(found, SLOW, PRICES)),
            set(LANGUAGE),
        ]

    def test_and_named_by_it(self, bundled: Embedder) -> None:
        names = {name for name, _ in found_themes(bundled, REFUNDS, SLOW, PRICES, LANGUAGE, OTHERS)}
        firsts = {word for name in names for word in name.split()}
        assert {"refund", "slow", "price", "language"} <= firsts
        assert all(1 <= len(name.split()) <= 3 for name in names)

    @pytest.mark.parametrize(
        ("one", "other", "names"),
        [
            (GERMAN_REFUNDS, GERMAN_PRICES, ("Erstattung", "Preis")),
            (SPANISH_REFUNDS, SPANISH_PRICES, ("reembolso", "precio")),
            (RUSSIAN_REFUNDS, RUSSIAN_SLOW, ("возврат", "медленно")),
        ],
        ids=["German", "Spanish", "Russian"],
    )
    def test_other_languages_are_told_apart_too(
        self, bundled: Embedder, one: list[str], other: list[str], names: tuple[str, str]
    ) -> None:
        found = found_themes(bundled, one, other, REFUNDS)
        assert {frozenset(group) for _, group in found} == {frozenset(one), frozenset(other), frozenset(REFUNDS)}
        for name in names:
            assert any(name in each.split() for each, _ in found)

    def test_comments_that_have_nothing_in_common_make_no_theme(self, bundled: Embedder) -> None:
        assert found_themes(bundled, OTHERS) == []

    @pytest.mark.slow
    def test_strange_comments_are_no_trouble(self, bundled: Embedder) -> None:
        strange = ["", "  \n", "refund " * 1_500, "👍", "👍", "👍", "😡", "😡 ", "😡", "!!!", "\u200f", "\x00", "12345"]
        strange += ["ההחזר לא הגיע", "איפה ההחזר שלי", "ההחזר מאחר"]
        found = found_themes(bundled, strange, REFUNDS)
        assert ("👍", {"👍"}) in found
        assert any("😡" in name for name, _ in found)
        assert any("ההחזר" in name for name, _ in found)


def sorted_by_name(found: Found, *topics: list[str]) -> list[list[str]]:
    """Topics of one size, in the order in which they were found."""
    return sorted(topics, key=lambda topic: [group for _, group in found].index(set(topic)))


class TestGroups:
    def test_the_largest_come_first_and_small_ones_not_at_all(self) -> None:
        texts = [*"abb", *"ccc", *"dddd"]
        found = themes(texts, along([0, 1, 1, 2, 2, 2, 3, 3, 3, 3]))
        assert [theme.members for theme in found] == [(6, 7, 8, 9), (3, 4, 5)]

    def test_no_more_than_asked_for(self) -> None:
        texts = [letter for letter in "abcd" for _ in range(3)]
        vectors = along([axis for axis in range(4) for _ in range(3)])
        assert len(themes(texts, vectors)) == 4
        assert len(themes(texts, vectors, most=2)) == 2

    def test_smaller_ones_can_be_asked_for(self) -> None:
        assert [theme.members for theme in themes(["so", "so"], along([0, 0]), smallest=2)] == [(0, 1)]

    def test_the_nearest_to_the_centre_comes_first(self) -> None:
        angles = [0.6, 0.0, 0.3, 0.35]
        vectors = np.array([[np.cos(angle), np.sin(angle)] for angle in angles], np.float32)
        (theme,) = themes(["the a is one", "the b is two", "the c is three", "the d is four"], vectors)
        assert theme.members[0] == 2
        assert theme.members[-1] == 1
        pairs = [np.cos(one - other) for at, one in enumerate(angles) for other in angles[:at]]
        assert theme.cohesion == pytest.approx(np.mean(pairs), abs=1e-6)

    def test_equal_comments_are_together_whatever_the_model_says(self) -> None:
        nothing = np.zeros((3, 4), np.float32)
        assert [theme.members for theme in themes(["Too slow", "too  slow", "too slow "], nothing)] == [(0, 1, 2)]

    def test_signs_are_together_only_with_their_like(self) -> None:
        found = themes(["👍", "😡", "👍", "😡", "👍", "😡"], along([0] * 6))
        assert sorted(theme.members for theme in found) == [(0, 2, 4), (1, 3, 5)]

    def test_vectors_that_are_no_numbers_are_left_out(self) -> None:
        vectors = along([0, 0, 0, 0])
        vectors[3] = np.nan
        (theme,) = themes(["it is one", "it is two", "it is three", "it is four"], vectors)
        assert set(theme.members) == {0, 1, 2}

    def test_nothing_has_no_themes(self) -> None:
        assert themes([], np.zeros((0, 4), np.float32)) == []
        assert themes(["", " ", "\n"], along([0, 0, 0])) == []

    def test_a_thousand_comments_are_grouped(self) -> None:
        texts = [f"this is about {'refund price speed tone'.split()[place % 4]}" for place in range(1_000)]  # noqa: SIM905
        found = themes(texts, along([place % 4 for place in range(1_000)]))
        assert [len(theme.members) for theme in found] == [250] * 4

    @given(st.permutations(range(24)))
    @pytest.mark.slow
    def test_the_order_of_comments_decides_nothing(self, order: list[int]) -> None:
        texts = [*REFUNDS, *SLOW, *PRICES, *GERMAN_PRICES, *OTHERS]
        vectors = WordEmbedder().embed(texts)
        before = themes(texts, vectors)
        after = themes([texts[place] for place in order], vectors[order])
        assert before
        assert [as_texts(theme, texts) for theme in before] == [
            as_texts(theme, [texts[place] for place in order]) for theme in after
        ]

    @given(st.lists(st.text(max_size=60), max_size=30), st.integers(0, 3))
    def test_any_text_is_taken(self, texts: list[str], axes: int) -> None:
        vectors = along([place % (axes + 1) for place in range(len(texts))])
        found = themes(texts, vectors, smallest=2)
        members = [member for theme in found for member in theme.members]
        assert len(members) == len(set(members))
        assert all(theme.name.strip() and len(theme.members) >= 2 for theme in found)
        assert all(texts[member].strip() for member in members)

    @pytest.mark.parametrize(
        ("rows", "options", "field"),
        [(2, {}, "vectors"), (3, {"most": 0}, "most"), (3, {"smallest": 1}, "smallest")],
    )
    def test_what_makes_no_sense_is_refused(self, rows: int, options: dict[str, int], field: str) -> None:
        with pytest.raises(Invalid) as caught:
            themes(["a", "b", "c"], along([0] * rows), **options)
        assert caught.value.field == field


def as_texts(theme: Theme, texts: Sequence[str]) -> tuple[str, tuple[str, ...], list[str], float]:
    return theme.name, theme.words, [texts[member] for member in theme.members], theme.cohesion


class TestNames:
    def test_a_name_has_the_words_few_others_have(self) -> None:
        texts = [
            "refund late",
            "the refund is late",
            "refund so late",
            "answer fine",
            "the answer is late",
            "answer ok",
        ]
        assert Namer(texts).name([0, 1, 2]) == ("refund late", ("refund", "late"))

    def test_forms_of_a_word_are_one_and_shown_as_mostly_written(self) -> None:
        texts = ["my refunds", "our refunds", "a refund", "The logo"]
        assert Namer(texts).name([0, 1, 2])[0] == "refunds"

    def test_words_come_in_their_usual_order(self) -> None:
        texts = ["slow logins at night", "slow logins again", "the slow logins", "a logo"]
        assert Namer(texts).name([0, 1, 2])[0] == "slow logins"

    def test_a_name_says_what_is_wrong_not_that_it_is(self) -> None:
        texts = [
            "Sorry, wrong answer, see your terms",
            "No, wrong answer again, read the terms!",
            "wrong answer",
            "logo",
        ]
        assert Namer(texts).name([0, 1, 2])[0] == "terms"
        assert Namer(["Sorry, wrong answer", "wrong answer!", "a logo"]).name([1, 0]) == ("wrong answer!", ())

    def test_a_capital_is_kept_where_it_means_something(self) -> None:
        texts = ["Login with Okta", "Okta fails", "no Okta", "Login is blue"]
        assert Namer(texts).name([0, 1, 2])[0] == "Okta"
        assert Namer(["Refund late", "no refund", "Refund!", "logo"]).name([0, 1, 2])[0] == "refund"

    def test_one_long_comment_does_not_name_a_group(self) -> None:
        texts = ["refund " + "parcel " * 120, "refund", "my refund", "logo"]
        assert Namer(texts).name([0, 1, 2])[0] == "refund"

    def test_without_shared_words_the_central_comment_is_the_name(self) -> None:
        texts = ["too slow", "takes ages", "where is it"]
        assert Namer(texts).name([1, 0, 2]) == ("takes ages", ())

    def test_without_spaces_the_central_comment_is_the_name(self) -> None:
        texts = ["退款太慢了", "我的退款什么时候到", "退款一直没收到"]
        assert Namer(texts).name([2, 0, 1]) == ("退款一直没收到", ())

    def test_a_name_that_is_taken_gets_further_words_and_else_a_number(self) -> None:
        texts = ["bad price", "bad price now", "bad day", "bad night", "bad food price now", "Bad week"]
        namer = Namer(texts)
        assert namer.distinct("bad", [0, 1, 2, 3, 4, 5], []) == "bad"
        assert namer.distinct("bad", [0, 1, 2, 4], ["Bad"]) == "bad price"
        assert namer.distinct("bad", [0, 1, 2, 4], ["bad", "bad price"]) == "bad price now"
        assert namer.distinct("Bad", [2, 3, 5], ["bad", "bad price"]) == "Bad (2)"
        assert namer.distinct("bad", [2, 3, 5], ["bad", "bad (2)"]) == "bad (3)"

    def test_no_two_themes_have_one_name(self) -> None:
        texts = [f"bad {first}{place}" for place, first in enumerate("aaaabbbccc")]
        vectors = np.eye(3, dtype=np.float32)[[0, 0, 0, 0, 1, 1, 1, 2, 2, 2]]
        assert [theme.name for theme in themes(texts, vectors)] == ["bad", "bad (2)", "bad (3)"]

    @given(st.text())
    def test_what_is_shortened_is_short(self, text: str) -> None:
        short = shortened(text)
        assert len(short) <= MAX_NAME
        assert short == text or text.startswith(short[:-1])

    @given(st.text())
    def test_any_text_has_terms(self, text: str) -> None:
        assert all(terms(text))
        english(text)


class TestTree:
    def test_groups_that_are_alike_on_average_become_one(self) -> None:
        similarity = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.4], [0.1, 0.4, 1.0]])
        assert [group.members for group in groups(similarity, 0.3)] == [(0, 1), (2,)]
        (whole,) = groups(similarity, 0.25)
        assert whole.level == pytest.approx(0.25)
        assert whole.cohesion == pytest.approx((0.8 + 0.1 + 0.4) / 3)

    @given(st.integers(0, 10_000), st.integers(1, 14), st.floats(-0.5, 0.9))
    def test_it_is_what_joining_the_nearest_two_makes(self, seed: int, size: int, alike: float) -> None:
        points = np.random.default_rng(seed).normal(size=(size, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        similarity = points @ points.T
        assert [set(group.members) for group in groups(similarity, alike)] == joined(similarity, alike)

    def test_parts_that_hold_together_better_are_told_apart(self) -> None:
        similarity = np.full((7, 7), 0.5)
        similarity[:3, :3] = similarity[3:6, 3:6] = 0.8
        similarity[6] = similarity[:, 6] = 0.4
        (whole,) = groups(similarity, 0.3)
        assert [part.members for part in divided(whole, smallest=3, firmness=0.85)] == [(0, 1, 2), (3, 4, 5)]
        assert divided(whole, smallest=3, firmness=0.5) == [whole]
        assert divided(whole, smallest=4, firmness=0.85) == [whole]

    def test_members_that_come_one_by_one_make_no_trouble(self) -> None:
        group = Group((0,))
        for member in range(1, 3_000):
            group = Group((*group.members, member), (group, Group((member,))), 0.5, 0.6)
        assert divided(group, smallest=3, firmness=0.9) == [group]


def joined(similarity: np.ndarray[tuple[int, ...], np.dtype[np.float64]], alike: float) -> list[set[int]]:
    """The same, done the long way: look at all pairs of groups, join the most alike, and again."""
    result = [{place} for place in range(len(similarity))]
    while len(result) > 1:
        pairs = [
            (float(similarity[np.ix_(sorted(one), sorted(other))].mean()), at, before)
            for at, one in enumerate(result)
            for before, other in enumerate(result[:at])
        ]
        level, at, before = max(pairs)
        if level < alike:
            break
        result[before] |= result.pop(at)
    return sorted(result, key=sorted)
