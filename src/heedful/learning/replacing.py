"""Whether a text gives another name or number for what a fact gives one for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from heedful.learning.stemming import stem
from heedful.learning.words import Word, words

Value = Literal["name", "number"]

_FAMILIES = {
    stem(word): family
    for family, units in {
        "time": "second minute hour day week month year sekunde sekunden minuten stunde stunden tag tage tagen woche "
        "wochen monat monate monaten jahr jahre jahren seconde secondes jour jours heure heures semaine semaines mois "
        "an ans segundo segundos minuto minutos hora horas día días semana semanas mes meses año años",
        "money": "euro dollar pound franc cent eur usd gbp chf euros dólares",
        "clock": "uhr am pm oclock h",
        "share": "percent prozent",
    }.items()
    for word in units.split()
}
_NO_UNITS = frozenset(
    stem(word)
    for word in """
    now since instead only rather actually currently today per and jetzt seit statt nicht bis oder maintenant depuis pas
    par ahora desde en por no
    """.split()  # noqa: SIM905
)


def replaced(stated: str, fact: str) -> set[Value]:
    """What kinds of value of a fact a text gives others for; numbers of different things are not compared.

    >>> replaced("It takes 2 weeks", "Refunds take 5 days"), replaced("2 pages about it", "Refunds take 5 days")
    ({'number'}, set())
    """
    found: set[Value] = set()
    said, held = words(stated), words(fact)
    terms, known = {word.term for word in said}, {word.term for word in held}
    if any(word.kind == "name" and word.term not in known for word in said) and any(
        word.kind == "name" and word.term not in terms for word in held
    ):
        found.add("name")
    units = {_unit(held, place, known) for place, word in enumerate(held) if word.kind == "number"}
    given = {
        _unit(said, place, known) for place, word in enumerate(said) if word.kind == "number" and word.term not in known
    }
    # A number without a unit can be of anything.
    if given & units or (units and "" in given):
        found.add("number")
    return found


def is_beside_value(term: str) -> bool:
    """Whether the stem of a word only says what a number counts, or since when.

    >>> is_beside_value("day"), is_beside_value("sinc"), is_beside_value("page")
    (True, True, False)
    """
    return term in _FAMILIES or term in _NO_UNITS


def _unit(text: Sequence[Word], place: int, known: set[str]) -> str:
    """What a number counts: a family of units, "" for none that is known from the fact, else a word."""
    following = text[place + 1] if place + 1 < len(text) else None
    # A word after a comma or a full stop is no unit.
    if following is None or following.kind == "number" or following.start - text[place].stop > 1:
        return ""
    family = _FAMILIES.get(following.term, "")
    if family:
        return "" if family == "clock" else family
    return "" if following.kind == "common" or following.term in known | _NO_UNITS else following.term
