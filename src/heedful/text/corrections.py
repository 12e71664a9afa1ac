"""The fact that a comment corrects, if it does more than complain."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Literal

from heedful.text.complaints import MIN_WORDS, VERDICTS, contrasts, has_verb, statement, verb
from heedful.text.regex import regex
from heedful.text.words import Word, stem, words

_DENIES = regex(r"\b(?:not|no|never|cannot|without|nicht|kein\w*|pas|jamais|nunca|non|mai)\b|n['’]t\b", re.IGNORECASE)
_INSTEAD_OF = regex(
    r"\bnot\b.{1,60}?\bbut\b|\bnicht\b.{1,60}?\bsondern\b|\bpas\b.{1,60}?\bmais\b|\bno\b.{1,60}?\bsino\b|"
    r"\bnon\b.{1,60}?\b(?:ma|bensì)\b|"
    r"(?:,\s*(?:and\s+)?(?:not|nicht|pas|no|non)|\b(?:instead of|rather than|statt|anstatt|au lieu d|en vez de|"
    r"en lugar de|invece d\w*))\b[^,;.]*",
    re.IGNORECASE,
)
_PLACE = regex(
    r"\b(?i:in|at|to|for|from|of|bei|nach|aus|von|für|en|à|au|aux|chez|de|du|a|para|di|da|per|presso)\s+(?=[^\W\d_a-zß-ÿ])"
)
_QUALIFIER = regex(r"\b(?:for|of|für|von|pour|de|du|para|per|di)\s+(?=\w)", re.IGNORECASE)
_GENERIC = frozenset(
    stem(word)
    for word in """
    price cost fee charge rate limit window period deadline term time date day hours opening number amount value
    address name manager default maximum minimum size change since update
    preis gebühr frist zeit termin datum prix tarif délai durée heure precio plazo hora horario
    prezzo tariffa termine durata orario weekdays weekends correct right true real actual new current
    der die das den dem ein eine le la les un une el los las il lo gli una
    """.split()  # noqa: SIM905
)
_GIVES = regex(
    r"\b(?:is|are|ends?|starts?|begins?|opens?|closes?|costs?|takes?|lasts?)"
    r"(?: (?:at|on|in|until|for|only|just|about|from))* \d",
    re.IGNORECASE,
)
_SINCE = regex(r"\b(?:since|seit|depuis|desde)\b", re.IGNORECASE)
_RULE = regex(
    r"\b(?:must|should|can|cannot|may|never|always|needs?|no|not|also|go(?:es)? to|retired|deprecated|free|closed|open|"
    r"(?:is|are|be) (?:\w+ )?(?:\w+ed|paid|sold|sent|made|seen|kept|given|held|done|built|led|run|taken|met|shown)|"
    r"(?:is|are) (?:in|at|on|for|by|optional|mandatory|necessary|possible|available|forbidden|valid))\b|n['’]t\b",
    re.IGNORECASE,
)
_TITLE = regex(r"\b(Dr|Mrs?|Ms|Prof)\. ")
_PAST = regex(r"\b(?:was|were|did|had)\b", re.IGNORECASE)


def corrected(comment: str, facts: Sequence[str], question: str) -> int | None:
    """The index of the fact that a comment corrects: about the same thing, and saying something else of it.

    >>> facts = ["Returns are accepted within 30 days", "Returns must be in the box"]
    >>> corrected("No, it is 45 days", facts, "How many days do I have for returns?")
    0
    >>> corrected("I did not like the tone at all", facts, "How many days do I have for returns?")
    >>> corrected("I returned it 45 days ago and nobody answers", facts, "How many days do I have for returns?")
    """
    claim = statement(comment)
    if claim is None:
        return None
    # A name after "Dr." opens no sentence.
    stated, facts = _TITLE.sub(r"\1 ", claim), [_TITLE.sub(r"\1 ", fact) for fact in facts]
    stated_words = _content(stated)
    terms, about = {word.term for word in stated_words}, {word.term for word in _content(question)}
    asserted = _INSTEAD_OF.sub(" ", stated)
    given = {word.term for word in _content(asserted)}
    found: list[tuple[int, int, int, int]] = []
    for index, fact in enumerate(facts):
        known = {word.term for word in _content(fact)}
        denies = _denies(asserted) != _denies(fact)
        # "30 days, not 14" says what the fact says.
        if given <= known and not denies:
            return None
        is_new = bool(given - known - about - VERDICTS) or (denies and not _numbers(stated_words))
        others = replaced(asserted, fact)
        is_about = is_new and not _is_about_another(asserted, fact, question)
        if is_about and _is_about(stated, stated_words, fact, about, others):
            # What only this fact says tells it from the others.
            elsewhere = {word.term for other in facts if other != fact for word in _content(other)} | about
            found.append((-len((terms & known) - elsewhere), -len(others), -len(terms & known), index))
    return min(found)[3] if found else None


def confirmed(comment: str, facts: Sequence[str]) -> int | None:
    """The index of the fact that says all that a comment states: it corrects an answer, and no fact.

    >>> facts = ["Returns are accepted within 30 days", "Gift cards never expire"]
    >>> confirmed("Wrong! Gift cards never expire.", facts), confirmed("Gift cards expire.", facts)
    (1, None)
    """
    asserted = _INSTEAD_OF.sub(" ", _TITLE.sub(r"\1 ", statement(comment) or ""))
    given = {word.term for word in _content(asserted)}
    for index, fact in enumerate(facts):
        known = {word.term for word in _content(fact)}
        if len(given) >= MIN_WORDS and given <= known and _denies(asserted) == _denies(fact):
            return index
    return None


def replacement_terms(comment: str, fact: str, question: str) -> frozenset[str]:
    """The terms that a comment puts in place of those of a fact: its numbers and names, or its other words where it has
    none. Two comments that give the same correct the fact in the same way.

    >>> fact, question = "Returns are accepted within 30 days", "How many days do I have for returns?"
    >>> sorted(replacement_terms("No, it is 45 days", fact, question))
    ['45']
    >>> sorted(replacement_terms("Wrong. Returns are accepted within 45 days, not 30.", fact, question))
    ['45']
    """
    stated = _TITLE.sub(r"\1 ", statement(comment) or "")
    old = {word.term for word in [*_content(fact), *_content(question)]} | VERDICTS
    new = [word for word in _content(stated) if word.term not in old]
    values = frozenset(word.term for word in new if word.kind in ("number", "name"))
    denial = {"not"} if not values and _denies(stated) != _denies(fact) else set()
    return values or frozenset({word.term for word in new} | denial)


def _is_about(stated: str, stated_words: Sequence[Word], fact: str, about: Set[str], others: Set[str]) -> bool:
    """Whether a statement is about the matter of a fact; `others` are the kinds of value that it gives others for."""
    terms, known = {word.term for word in stated_words}, {word.term for word in _content(fact)}
    is_contrast = contrasts(stated)
    if not terms & known and not (terms & about and known & about):
        # "The price is 45 now" has no word of "It costs 39 euros".
        return "number" in others and bool(known & about) and (is_contrast or _GIVES.search(stated) is not None)
    if not has_verb(stated):
        # "Port 6432" gives another value and no more; "Battery dead after 4 hours" does not.
        return bool(others) and (is_contrast or _plain(stated_words) <= known | about | VERDICTS)
    # "The transfer of 3,000 euros is not there" gives no number, it only has one.
    states_number = any(word.start >= verb(stated)[1] for word in stated_words if word.kind == "number")
    if is_contrast or "name" in others or ("number" in others and states_number) or _SINCE.search(stated):
        return True
    # "30 days is theft" speaks of the fact and puts nothing in its place; "matches take forever" is no rule.
    if _PAST.search(stated) or _numbers(stated_words) & known or not _RULE.search(stated):
        return False
    is_denial = _denies(stated) != _denies(fact) and len(terms & (known | about)) > 1
    return is_denial or stated_words[0].term in known | about


def _is_about_another(asserted: str, fact: str, question: str) -> bool:
    """Whether a statement is about another thing or place than a fact, of which it then says nothing."""
    about = {word.term for word in _content(question)}
    given, known = _content(asserted), {word.term for word in _content(fact)} | about
    # A name that was asked for is the subject; other names of the fact can be replaced, each by one of its kind.
    placed, held = ({word.term for word in _placed(text)} for text in (asserted, fact))
    if not placed <= known and held <= about:
        return True
    if not _plain_terms(asserted) & (_plain_terms(fact) | _plain_terms(question)):
        # In another language, the same subject has another word.
        return False
    before = {word.term for word in given if word.stop <= verb(asserted)[0] and word.kind in ("word", "name")}
    subject = {term for term in before if not is_beside_value(term)}
    strange = subject - known - _GENERIC - VERDICTS
    # "The ticket for children" is another one.
    qualified = {match.end() for match in _QUALIFIER.finditer(asserted)}
    if any(word.start in qualified and word.term in strange for word in given):
        return True
    gives_number = any(word.kind == "number" and word.term not in known for word in given)
    return bool(strange) and strange == subject and (gives_number or not _names(fact) - about)


def _plain_terms(text: str) -> set[str]:
    return {word.term for word in words(text) if word.kind != "number" and not is_beside_value(word.term)}


def _placed(text: str) -> list[Word]:
    """The names of places, people and firms that a text says something of: "in Oslo", "of Dr. Roth"."""
    starts = {match.end() for match in _PLACE.finditer(text)}
    return [word for word in _content(text) if word.start in starts and word.kind == "name"]


def _names(text: str) -> set[str]:
    return {word.term for word in words(text) if word.kind == "name" and not is_beside_value(word.term)}


def _plain(stated_words: Sequence[Word]) -> set[str]:
    """The words that are neither values nor beside one; the first word before a name belongs to it."""
    rest = stated_words[1:] if len(stated_words) > 1 and stated_words[1].kind == "name" else stated_words
    return {word.term for word in rest if word.kind == "word" and not is_beside_value(word.term)}


def _denies(text: str) -> bool:
    return _DENIES.search(text) is not None


def _content(text: str) -> list[Word]:
    return [word for word in words(text) if word.kind != "common"]


def _numbers(found: Sequence[Word]) -> set[str]:
    return {word.term for word in found if word.kind == "number"}


Value = Literal["name", "number"]

_FAMILIES = {
    stem(word): family
    for family, units in {
        "time": "second minute hour day week month year sekunde sekunden minuten stunde stunden tag tage tagen woche "
        "wochen monat monate monaten jahr jahre jahren seconde secondes jour jours heure heures semaine semaines mois "
        "an ans segundo segundos minuto minutos hora horas día días semana semanas mes meses año años secondi minuti "
        "ora ore giorno giorni settimana settimane mese mesi anno anni",
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
    par ahora desde en por no adesso ora dal da invece non
    """.split()  # noqa: SIM905
)


def replaced(stated: str, fact: str) -> set[Value]:
    """The kinds of value of a fact that a text gives others for; numbers of different things are not compared.

    >>> replaced("It takes 2 weeks", "Refunds take 5 days"), replaced("2 pages about it", "Refunds take 5 days")
    ({'number'}, set())
    """
    found: set[Value] = set()
    stated_words, held = words(stated), words(fact)
    terms, known = {word.term for word in stated_words}, {word.term for word in held}
    if any(word.kind == "name" and word.term not in known for word in stated_words) and any(
        word.kind == "name" and word.term not in terms for word in held
    ):
        found.add("name")
    units = {_unit(held, index, known) for index, word in enumerate(held) if word.kind == "number"}
    stated_units = {
        _unit(stated_words, index, known)
        for index, word in enumerate(stated_words)
        if word.kind == "number" and word.term not in known
    }
    # A number without a unit can be of anything.
    if stated_units & units or (units and "" in stated_units):
        found.add("number")
    return found


def is_beside_value(term: str) -> bool:
    """Whether the stem of a word only says what a number counts, or since when.

    >>> is_beside_value("day"), is_beside_value("sinc"), is_beside_value("page")
    (True, True, False)
    """
    return term in _FAMILIES or term in _NO_UNITS


def unit_family(term: str) -> str:
    """The quantity that the stem of a unit measures: time, money, a clock time or a share; "" for no unit.

    >>> unit_family("day"), unit_family("page")
    ('time', '')
    """
    return _FAMILIES.get(term, "")


def _unit(text: Sequence[Word], index: int, known: set[str]) -> str:
    """The unit of a number: a family of units, "" for none that is known from the fact, else a word."""
    following = text[index + 1] if index + 1 < len(text) else None
    # A word after a comma or a full stop is no unit.
    if following is None or following.kind == "number" or following.start - text[index].stop > 1:
        return ""
    if family := unit_family(following.term):
        return "" if family == "clock" else family
    return "" if following.kind == "common" or following.term in known | _NO_UNITS else following.term
