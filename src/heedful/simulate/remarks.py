"""What people write beside a rating: a few themes in many words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

Subject = Literal["refunds", "length", "price", "language", "crash", "wrong", "praise"]


@dataclass(frozen=True, slots=True)
class Wording:
    """The parts that remarks about one subject are put together from."""

    openings: tuple[str, ...]
    complaints: tuple[str, ...]
    endings: tuple[str, ...]


WORDINGS: Mapping[Subject, Wording] = {
    "refunds": Wording(
        ("", "", "Sorry, but ", "Honestly, ", "Third time I ask: ", "Again: ", "No, "),
        (
            "my refund took {weeks} weeks, not 5 days",
            "the refund is not on my account after {days} days",
            "still no refund, it has been {days} days since you got the parcel",
            "5 days is not true any more for refunds, I wait since {weeks} weeks",
            "you promise the money in 5 days and I have been waiting for {days}",
            "where is my money? The parcel reached you {days} days ago",
            "the refund for order {order} never came",
            "your colleague said refunds now take {days} days, the bot says 5",
            "refund outdated info, it is {weeks} weeks at the moment",
            "I was told 5 days for my refund, that was {weeks} weeks ago",
        ),
        ("", "", ".", "!!", ". Please check.", ". Very disappointed.", " and nobody answers."),
    ),
    "length": Wording(
        ("", "", "Well, ", "To be fair, it is right, but "),
        (
            "way too long, I had to search for the one sentence I need",
            "the answer took ages to appear",
            "slow, slow, slow",
            "too much text for a simple question",
            "why tell me two things when I asked for one",
            "I waited {seconds} seconds for this",
            "could be half as long",
            "it loads so slowly that I nearly left",
        ),
        ("", ".", "...", ". Keep it short.", ". On the phone it is unreadable."),
    ),
    "price": Wording(
        ("", "", "Sorry, ", "No, "),
        (
            "that price is wrong, the checkout says something else",
            "the shop page shows {price} euros",
            "old price, at the checkout I paid {price} euros",
            "the price you tell is not the price I see",
            "I was charged {price} euros and not what the bot says",
            "two different prices in one answer, which one is it",
            "wrong price again",
        ),
        ("", ".", "!", ". Please correct it."),
    ),
    "language": Wording(
        ("", "", "Bitte: ", "Perdón, "),
        (
            "I asked in my language and got English",
            "Frage auf Deutsch, Antwort auf Englisch",
            "bitte auf Deutsch antworten",
            "warum auf Englisch?",
            "la respuesta está en inglés",
            "no entiendo, contesta en español por favor",
            "wrong language",
            "ich verstehe kein Englisch",
        ),
        ("", ".", "!", " :("),
    ),
    "crash": Wording(
        ("", "", "Hi, ", "By the way, "),
        (
            "the app crashed while I was reading this",
            "app closes itself when I open the chat",
            "had to start the app {times} times to see the answer",
            "white screen in the app after the update",
            "the app freezes when I tap on the link",
            "crash on my Pixel, version 4.{minor}",
            "the app crashes as soon as I open the chat",
        ),
        ("", ".", "!", ". On the website it works.", ". Android."),
    ),
    "wrong": Wording(
        ("", "", "Sorry, ", "No, "),
        (
            "wrong answer, I asked something else",
            "wrong answer, that was not my question",
            "the answer does not fit my question",
            "that is not an answer to my question",
            "this answer is about another question",
            "wrong answer, my account says the contrary",
            "the answer is no use to me",
            "the answer is wrong",
        ),
        ("", ".", "!"),
    ),
    "praise": Wording(
        ("", "", "Wow, ", "Oh, "),
        (
            "thanks, exactly what I needed",
            "great, solved in a minute",
            "clear and short",
            "good answer",
            "better than the hotline",
            "finally somebody who knows",
            "perfect",
        ),
        ("", ".", "!", " :)", ", thank you."),
    ),
}


def remark(subject: Subject, random: Random) -> str:
    """One remark about a subject."""
    wording = WORDINGS[subject]
    opening, complaint = random.choice(wording.openings), random.choice(wording.complaints)
    text = complaint.format(
        weeks=random.randint(2, 4),
        days=random.randint(9, 24),
        order=random.randint(40_000, 49_999),
        seconds=random.randint(10, 40),
        price=random.choice((29, 41, 45, 49)),
        times=random.randint(2, 4),
        minor=random.randint(1, 9),
    )
    if not opening and random.random() < 0.6:
        text = text[0].upper() + text[1:]
    return opening + text + random.choice(wording.endings)
