"""What a comment states, less all that it complains of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from heedful.text.complaints import compares, is_remark, is_story, is_unfair
from heedful.text.words import sentences, words

MIN_WORDS = 2
"""A statement without a number or a name has at least this many content words."""

VERDICTS = frozenset(
    word.term
    for word in words(
        "answer wrong bad good great useless helpful unhelpful incorrect right correct incomplete unclear confusing "
        "outdated false true terrible poor nice thanks response reply help please better worse now again still info "
        "information richtig stimmt genau bien vrai juste exact correcto exacto verdad giusto vero esatto corretto"
    )
)
"""Words that say what somebody thinks of an answer, and nothing else."""

_OPENING = re.compile(
    r"^(?:(?:(?:no|nope|wrong|incorrect|not (?:true|right|correct)|false|outdated|hm+|well|careful|again|hi|hello|hey|"
    r"correction|update|note|fyi|by the way|btw|ok(?:ay)?|to be fair|unfortunately|nein|falsch|veraltet|non|faux|falso|"
    # "No refunds on Sundays" must not become its contrary.
    r"incorrecto|perdón|no[,.]|sbagliato|errato)\b\s*)+(?:[,.;:!…—–-]+\s*|(?=(?:it|its|they|the|we|you|there)\b))"
    r"|(?:actually|sorry|honestly|in fact)\b[\s,.;:!—–-]*(?:but\s+)?)",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(r"\b(?:dr|mrs?|ms|prof|st|no|nr|approx|ca|e\.g|i\.e|z\.b|p\.ex)\.$", re.IGNORECASE)
_LONGEST_ENDING = 8  # characters of one of these, or of a day, with the one before it
_DAY = re.compile(r"\b\d{1,2}\.$")
_MONTH = re.compile(r"(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
# Only from the first of several spaces, so that a run of them is read once.
_JOINT = re.compile(r"(?:(?<!\s)\s++)?+[:;,]\s++|(?<!\s)\s++[-—–]++\s++")
_JOINS = re.compile(r"^(?:and|but|so|und|aber|et|mais|y|pero)\s+", re.IGNORECASE)
_LEANS_BACK = re.compile(
    r"^(?:not|nor|neither|or|which|who|whose|because|as|than|then|nicht|pas|sondern|sino|no|non|bensì)\b",
    re.IGNORECASE,
)
_LEANS_ON = re.compile(
    r"^(?:if|when|because|as|although|though|while|unless|until|before|after|instead|wenn|weil|si|quand|cuando)\b",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"^use\b|\b(?:actually|should be|should have been|now|no longer|any ?more|instead|rather than|changed to|moved to|"
    r"in fact|it(?: i|['’])s|they(?: a|['’])re|really is|at the moment|currently|jetzt|nicht mehr|sondern|statt|"
    r"anstatt|maintenant|désormais|au lieu|ahora|ya no|sino|en vez|en lugar|adesso|ormai|invece|bensì)\b|"
    r"\b(?:not|pas)\b.{1,60}\b(?:but|mais)\b|,\s*(?:not|nicht|pas|non)\b|"
    r",\s*no (?:hasta|el|la|los|las|en|de|a|\d)",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|has|have|can|cannot|may|must|should|will|never|always|does|do(?=n['’]t| not)|went up|went down|"
    r"retired|"
    r"(?:(?:was|were|been) )?(?:moved|changed|raised|lowered|increased|reduced|extended|renamed) to|"
    r"(?:was|were|been) (?:removed|replaced|closed|cancelled|discontinued|abolished)|"
    r"(?:go|cost|take|open|close|start|begin|end|expire|apply|include|require|need|ship|lead|run|work|live|belong|"
    r"return|accept|travel|come|get|use|support|cover|contain|allow|offer|deliver|charge|send|sell|provide|last|stay|"
    r"host|handle|manage|own|see|listen|connect|pay|depend|arrive|leave|sit|stop|change|say|keep)(?:e?s)?|"
    r"ist|sind|hat|haben|kann|können|muss|müssen|kostet|kosten|beträgt|dauert|gilt|gelten|beginnt|beginnen|endet|kommt|"
    r"est|sont|ont|peut|peuvent|coûte|coûtent|dure|ouvre|ferme|commence|"
    r"es|son|tiene|tienen|puede|pueden|cuesta|cuestan|dura|abre|cierra|empieza|"
    r"è|sono|hanno|può|possono|costa|costano|durano|apre|chiude|inizia|finisce|vale|öffnet|schließt|leitet)\b|\bc['’]est\b|\w['’](?:s|re)\b|n['’]t\b|"
    # "The oven heats up", whatever the verb.
    r"^(?:the|a|an|each|every|it|he|she) (?:\w+[^\Ws] )?\w+[^\Ws]s"
    r"(?= (?:up|at|on|in|to|for|until|within|the|a|an|no|only|\d))",
    re.IGNORECASE,
)


def statement(comment: str) -> str | None:
    """What a comment states, less its verdict and what else it complains of; None if it states nothing.

    >>> statement("Wrong! the window is 45 days, not 30. Please correct it.")
    'The window is 45 days, not 30.'
    >>> statement("The answer was bad")
    >>> statement("I waited 45 days and nobody called")
    """
    if is_unfair(comment):
        return None
    return " ".join(stated for sentence in _sentences(comment) for stated in _stated(sentence)) or None


def contrasts(stated: str) -> bool:
    """Whether a statement says that something is otherwise than it was said or used to be.

    >>> contrasts("45 days, not 30"), contrasts("Returns are free")
    (True, False)
    """
    return _CONTRAST.search(stated) is not None


def has_verb(stated: str) -> bool:
    """Whether a statement has one of the verbs that most statements have, in the present.

    >>> has_verb("Gift cards never expire"), has_verb("Battery dead after 4 hours")
    (True, False)
    """
    return verb(stated) != (0, 0)


def verb(stated: str) -> tuple[int, int]:
    """Where the first verb of a statement begins and ends; (0, 0) if it has none."""
    found = _VERB.search(stated)
    return (0, 0) if found is None else found.span()


def _sentences(comment: str) -> list[str]:
    """The sentences of a comment; "Dr." ends none, nor does the day of a date."""
    found: list[str] = []
    for sentence in sentences(comment):
        before = found[-1] if found else ""
        last = max(0, len(before) - _LONGEST_ENDING)
        if _UNFINISHED.search(before, last) or (_DAY.search(before, last) and _MONTH.match(sentence)):
            found[-1] += f" {sentence}"
        else:
            found.append(sentence)
    return found


def _stated(sentence: str) -> Iterator[str]:
    """What the first clauses of a sentence that state something say together."""
    while (shorter := _OPENING.sub("", sentence, count=1)) != sentence:
        sentence = shorter
    start, stop = _run(sentence)
    text = _JOINS.sub("", sentence[start:stop])
    # "Thanks for nothing, bicycle expert": what is left of a sentence must be one itself.
    if stop - start < len(sentence) and not (has_verb(text) or contrasts(text)):
        return
    telling = [word for word in words(text) if word.kind != "common" and word.term not in VERDICTS]
    if len(telling) >= MIN_WORDS or any(word.kind in ("name", "number") for word in telling):
        yield text[0].upper() + text[1:]


def _run(sentence: str) -> tuple[int, int]:
    """Where the first clauses that state something begin and end; nowhere if none does."""
    nowhere = (0, 0)
    if sentence.rstrip("\"')”’ ").endswith("?") or compares(sentence):
        return nowhere
    joints = [(match.start(), match.end(), "," in match.group()) for match in _JOINT.finditer(sentence)]
    starts = [(0, False), *((end, is_comma) for _, end, is_comma in joints)]
    ends = [*(start for start, _, _ in joints), len(sentence)]
    run = nowhere
    is_spoilt = follows_remark = False
    for (start, is_comma), end in zip(starts, ends, strict=True):
        clause = _JOINS.sub("", sentence[start:end])
        # "I waited, it is the third week": what follows a story goes on with it.
        is_spoilt = is_story(clause) or (is_spoilt and is_comma)
        if is_spoilt or is_remark(clause) or (follows_remark and _LEANS_BACK.search(clause)):
            if run != nowhere and not _LEANS_ON.search(sentence[slice(*run)]):
                return run
            run, follows_remark = nowhere, True
        elif clause:
            run, follows_remark = (start if run == nowhere else run[0], end), False
    return run
