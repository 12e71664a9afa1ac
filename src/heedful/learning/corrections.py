"""Comments that correct a fact, told from those that only complain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from heedful.learning.complaints import is_remark, is_story
from heedful.learning.replacing import replaced
from heedful.learning.words import Word, sentences, words

LEAST_WORDS = 2
"""A statement without a number or a name has at least this many words that tell something."""

_VALUES = ("name", "number")

_OPENING = re.compile(
    r"^(?:(?:(?:no|nope|wrong|incorrect|not (?:true|right|correct)|false|outdated|hm+|well|careful|again|hi|hello|hey|"
    r"correction|update|note|fyi|by the way|btw|ok(?:ay)?|to be fair|unfortunately|"
    r"nein|falsch|veraltet|non|faux|falso|incorrecto|perdón)\b\s*)+(?:[,.;:!…—–-]+\s*|(?=(?:it|its|they|the|we|you|there)\b))"
    r"|(?:actually|sorry|honestly|in fact)\b[\s,.;:!—–-]*(?:but\s+)?)",
    re.IGNORECASE,
)
_JOINT = re.compile(r"\s*[:;]\s+|\s+[-—–]+\s+|\s*,\s+")
_JOINS = re.compile(r"^(?:and|but|so|und|aber|et|mais|y|pero)\s+", re.IGNORECASE)
_LEANS_BACK = re.compile(
    r"^(?:not|nor|neither|or|which|who|whose|because|as|than|then|nicht|pas|sondern|sino|no)\b", re.IGNORECASE
)
_LEANS_ON = re.compile(
    r"^(?:if|when|because|as|although|though|while|unless|until|before|after|instead|wenn|weil|si|quand|cuando)\b",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"^use\b|\b(?:actually|should be|should have been|now|no longer|any ?more|instead|rather than|changed to|moved to|"
    r"correct(?:ion|ly)?|in fact|it(?: i|')?s|they(?: a|')?re|really is|at the moment|currently|used to|since|has been|jetzt|seit|nicht mehr|sondern|"
    r"maintenant|désormais|depuis|statt|anstatt|au lieu|en vez|en lugar|ahora|desde|ya no|sino)\b|\bnot\b.+\bbut\b|,\s*(?:not|nicht|pas|no)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(r"\b(?:not|no|never|cannot|without|nicht|kein\w*|pas|jamais|nunca)\b|n['’]t\b", re.IGNORECASE)
_GIVES = re.compile(
    r"\b(?:is|are|ends?|starts?|begins?|opens?|closes?|costs?|takes?|lasts?)(?: (?:at|on|in|until|for|only|just|about|from))*"
    r" \d",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"\b(?:is|are|isn['’]t|aren['’]t|(?<=['’])s|(?<=['’])re|has|have|can|can['’]t|cannot|may|must|need|never|always|do(?:es)?(?: not|n['’]t)|will|"
    r"wo(?:n['’]t)|(?:go|cost|take|open|close|start|begin|end|expire|apply|include|require|need|ship|lead|run|work|live|"
    r"belong|return|accept|travel|come|get|use|support|cover|contain|allow|offer|deliver|charge|send|sell|provide|last|"
    r"stay|host|handle|manage|own|see|listen|connect|pay|depend|arrive|leave|report|sit|stop|change)(?:e?s)?|"
    r"ist|sind|hat|haben|kann|können|muss|müssen|est|sont|a|ont|peut|peuvent|es|son|tiene|tienen|puede|pueden)\b",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:was|were|did|had)\b", re.IGNORECASE)
_VERDICTS = frozenset(
    word.term
    for word in words(
        "answer wrong bad good great useless helpful unhelpful incorrect right correct incomplete unclear confusing "
        "outdated false true terrible poor nice thanks response reply help please better worse now again still info "
        "information"
    )
)


def statement(comment: str) -> str | None:
    """What a comment states, less its verdict and what else it complains of; None if it states nothing.

    >>> statement("Wrong! the window is 45 days, not 30. Please correct it.")
    'The window is 45 days, not 30.'
    >>> statement("The answer was bad")
    >>> statement("I waited 45 days and nobody called")
    """
    return " ".join(stated for sentence in sentences(comment) for stated in _stated(sentence)) or None


def corrected(comment: str, facts: Sequence[str], question: str) -> int | None:
    """The place of the fact that a comment corrects: about the same thing, and saying something else of it.

    >>> facts = ["Returns are accepted within 30 days", "Returns must be in the box"]
    >>> corrected("No, it is 45 days", facts, "How many days do I have for returns?")
    0
    >>> corrected("I did not like the tone at all", facts, "How many days do I have for returns?")
    """
    stated = statement(comment)
    if stated is None:
        return None
    said = _content(stated)
    terms, about = {word.term for word in said}, {word.term for word in _content(question)}
    found: list[tuple[int, int, int]] = []
    for place, fact in enumerate(facts):
        known = {word.term for word in _content(fact)}
        denies = _denies(stated) != _denies(fact)
        if terms <= known and not denies:
            return None
        others = replaced(stated, fact)
        is_new = bool(terms - known - about - _VERDICTS) or (denies and not _values(said, "number"))
        if is_new and _is_about(stated, said, fact, about, others):
            found.append((-len(others), -len(terms & known), place))
    return min(found)[2] if found else None


def _is_about(stated: str, said: Sequence[Word], fact: str, about: Set[str], others: Set[str]) -> bool:
    """Whether what is said is about what a fact says; `others` are the kinds of value that it gives others for."""
    held = _content(fact)
    terms, known = {word.term for word in said}, {word.term for word in held}
    has_cue = _CUE.search(stated) is not None
    if not terms & known and not (terms & about and known & about):
        # "The price is 45 now" has no word of "It costs 39 euros".
        return "number" in others and bool(known & about) and (has_cue or _GIVES.search(stated) is not None)
    if others or has_cue:
        return True
    if _PAST.search(stated) or not _STATES.search(stated):
        return False
    if _denies(stated) != _denies(fact) and len(terms & (known | about)) > 1:
        return True
    # "30 days is theft" speaks of the fact and puts nothing in its place.
    return said[0].term in known | about and not _values(said, "number") & known


def _stated(sentence: str) -> Iterator[str]:
    """The first run of clauses of a sentence that state something."""
    while (shorter := _OPENING.sub("", sentence, count=1)) != sentence:
        sentence = shorter
    run = _run(sentence)
    if run is None or sentence.rstrip("\"')”’ ").endswith("?"):
        return
    text = _JOINS.sub("", sentence[slice(*run)])
    # "Thanks for nothing, bicycle expert": what is left of a sentence must be one itself.
    if len(text) < len(sentence) - 1 and not (_STATES.search(text) or _CUE.search(text)):
        return
    telling = [word for word in _content(text) if word.term not in _VERDICTS]
    if len(telling) >= LEAST_WORDS or _values(telling):
        yield text[0].upper() + text[1:]


def _run(sentence: str) -> tuple[int, int] | None:
    """Where the first clauses that state something begin and end."""
    joints = [(match.start(), match.end(), "," in match.group()) for match in _JOINT.finditer(sentence)]
    starts = [(0, False), *((end, is_comma) for _, end, is_comma in joints)]
    ends = [*(start for start, _, _ in joints), len(sentence)]
    run: tuple[int, int] | None = None
    is_spoilt, follows_remark = False, False
    for (start, is_comma), end in zip(starts, ends, strict=True):
        clause = _JOINS.sub("", sentence[start:end])
        # "I waited, it is the third week": what follows a story goes on with it.
        is_spoilt = is_story(clause) or (is_spoilt and is_comma)
        if is_spoilt or is_remark(clause) or (follows_remark and _LEANS_BACK.search(clause)):
            if run is not None and not _LEANS_ON.search(sentence[slice(*run)]):
                return run
            run, follows_remark = None, True
        elif clause:
            run = (run[0] if run is not None else start, end)
            follows_remark = False
    return run


def _denies(text: str) -> bool:
    return _DENIES.search(text) is not None


def _content(text: str) -> list[Word]:
    return [word for word in words(text) if word.kind != "common"]


def _values(found: Sequence[Word], *kinds: str) -> set[str]:
    """The names, numbers and dates among words, or one kind of them: what a correction most often replaces."""
    return {word.term for word in found if word.kind in (kinds or _VALUES)}
