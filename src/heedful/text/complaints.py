"""The statement in a comment, less all that states nothing: mockery, stories, requests, questions, verdicts, and talk
about the answer.

English above all; the most frequent words of German, French, Spanish and Italian. A statement that is taken for one of
these waits for review; a complaint that is taken for a statement is recalled for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from heedful.text import word_set
from heedful.text.regex import regex
from heedful.text.words import sentences, words


def _any(*parts: str) -> re.Pattern[str]:
    return regex("|".join(rf"\b(?:{part})" for part in parts), re.IGNORECASE)


_ADVERBS = r"(?:(?:just|only|also|always|still|simply|really|now|even|never|no longer|already)\s+)*"
_SPOKE = (
    r"(?:ask|wait|tr(?:y|ied)|search|look|pay|paid|call|order|wrote|write|read|got|had|went|drove|need|want|spent|took|"
    r"receiv|sent|return|bought|buy|contact|complain|report|lost|saw|see|found|were|could|have been|hope|expect|never|"
    r"still)\w*"
)

_FIRST_PERSON = _any(
    r"(?:i|me|my|mine|myself|im|ive)\b",
    rf"we\s+(?:have\s+)?{_SPOKE}\b",
    r"(?:us|our own)\b",
    r"our (?:order|parcel|package|refund|money|account|question|child|son|daughter|invoice|ticket)s?\b",
    r"(?:ich|mir|mich|mein(?:e[mnrs]?)?)\b",
    r"(?:je|moi|mon|ma|mes)\b|j['’]",
    r"(?:yo|mi|mis|llevo|llevamos|tengo|quiero|espero|estoy|pregunté|pedí)\b",
    r"(?:io|mio|mia|miei|mie|voglio|aspetto|ho)\b",
)
_HEARSAY = _any(
    r"(?:heard|hear|claims? (?:that|it|to)|reckons?|supposedly|allegedly|rumou?rs?)\b",
    r"(?:people|they|everyone|everybody|someone|somebody|friends?|neighbou?rs?) says?\b",
    r"(?:sagt\w*|meint\w*|behauptet\w*|laut|angeblich|gehört)\b",
    r"(?:dit|disent|selon|d['’]après|paraît|prétend\w*)\b",
    r"(?:dicen?|dijo|según|al parecer|supuestamente)\b",
    r"(?:dicono?|detto|secondo|a quanto pare|pare che)\b",
)
_WENT_WRONG = _any(
    r"still\b",
    r"(?:is|are|am|['’]s|['’]re|keeps?) (?:\w+ly )?"
    r"(?!moving|closing|opening|changing|starting|ending|being|going)\w{2,}ing\b",
    r"do(?:es)?(?: not|n['’]t) (?!need|expire|apply|include|cover|accept|require|have|exist|cost|allow|offer|ship|"
    r"support|open|close|use|count|end|start|take|charge|deliver|belong|depend|run|sell)\w+",
    r"(?:nobody|no one|noone|niemand|personne|nadie)\b",
    r"never (?:came|come|arriv|got|get|receiv|work|call|answer|repl|show|happen|reach|heard)\w*",
    r"(?:ago|yet|yesterday|last (?:night|time|week)|at all)\b",
    r"(?:it|there) (?:has|have) been \d",
    r"(?:has|have|had|['’]s) been (?:\w+ )?for (?:\d|hours|days|weeks|months|years|ages)",
    r"(?:was|were|had)\b(?! (?:\w+ed|cut|set) to\b).{0,60}\b\d+ (?:second|minute|hour|day|week|month|year)s?\b",
    r"been waiting\b",
    r"(?:crash(?:es|ed|ing)?|freezes?|froze|hangs|hung|times out|timed out|timeout|smells?|stinks?|stank)\b",
    rf"(?:is|are|got|gets|came|arrived|['’]s) {_ADVERBS}(?:broken|missing|late|lost|stuck|ruined|gone)\b",
    rf"(?:was|were|got|been) {_ADVERBS}(?:refused|rejected|declined|cancelled without)\b",
    r"(?:refused|rejected|declined|broken|broke|missing|late|lost)\W*$",
    r"(?:fails|failed|failing|broke)\b",
    r"won['’]?t (?!be\b)",
    r"(?:did|would|will)(?: not|n['’]?t) (?:work|print|load|help|answer|start|appear|show|respond|make sense)\b",
    r"(?:not|nothing|stopped) work(?:s|ing)?\b",
    r"(?:tries|attempts)\b",
    r"(?:times in a row|every time|each time|(?:second|third|fourth|\d+(?:nd|rd|th)) time)\b",
    r"\d+ times(?! (?:a|per|each|every|daily)\b)",
    r"(?:order|claim|case|booking|invoice|reference|shipment|train|flight) (?:number |no\.? |nr\.? |# ?)?\d{3,}",
)
_CHANGES = word_set("""
moved changed retired increased decreased dropped replaced renamed removed closed switched merged introduced
cancelled canceled discontinued extended raised lowered reduced updated founded died joined opened ended
started expired stopped resigned migrated deprecated based located limited used supposed shared united
outdated
""")
_NARRATED = regex(
    r"\b(?:came|took|gave|said|told|stood|thought|felt|saw|wrote|drove|threw|forgot|knew|fell|did|"
    r"went(?! (?:up|down|to)))\b",
    re.IGNORECASE,
)
_PLAIN = regex(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+")
_IN_THE_PAST = regex(r"\w{2,}[^\We]ed")
_ADVERB = regex(r"\w+ly|now|also|only|always|never|not|already|again|still|often|longer|just|both|all")
_NOT_A_DOER = word_set("""
is are be been being was were get gets isn't aren't wasn't weren't it's they're that's there's he's she's a an
the of for with without in on by at from to and or no as if when once than your their its our which any each
every more most less
""")
_STARTS_A_STORY = regex(
    rf"^{_ADVERBS}(?:waited|waiting|tried|asked|took|had to|got|paid|called|wrote|ordered|spent|need|want|looking|seit|"
    r"depuis|desde)\b",
    re.IGNORECASE,
)

_ANSWER = _any(
    r"(?:answers?|answered|answering|repl(?:y|ies|ied)|responses?|responds?|bot|chatbot|assistant|robot|explanation|tone)\b",
    r"(?:wording|sentences?|paragraphs?|summary|citations?|screenshots?|pictures?|photos?|language|typos?)\b",
    r"(?:mention|repeat|ignor|misunderst|confus|understand|understood|explain)\w*",
    r"(?:not a|no) word\b",
    rf"(?:it|this|that|which) {_ADVERBS}(?:says?|said|tells?|told|gives?|gave|keeps?|kept|claims?|shows?|suggest\w*|"
    r"forg[eo]t\w*|made|makes|invent\w*|assum\w*|mix\w*|adds?|talks?|loads?|feels|sounds|reads|looks)\b",
    r"(?:said|told|tell|telling|colleague|contradict\w*)\b",
    r"(?:antwort\w*|frage|réponse|répond\w*|question|respuesta|respond\w*|contesta\w*|pregunta)\b",
)
_RIGHT_ANSWER = regex(r"^.*?\b(?:correct|right|true|real|proper) answer (?:is|would be|should be)\b", re.IGNORECASE)

_YOU = _any(r"(?:you|u|your|yours|youre|du|dein\w*|euch|eure?r?|tu|votre|vos|usted)\b", r"you['’]")
_ANYONE = regex(
    rf"\byou {_ADVERBS}(?:can(?:not|['’]t)?|may|must(?:n['’]t)?|need|have(?! (?:been|no idea|not|ignored))|get|pay|"
    r"do(?:n['’]t| not) (?:need|have|pay|get)|should|will|are (?:allowed|entitled|charged|billed|asked))\b",
    re.IGNORECASE,
)

_PLAIN_STATES = (
    r"(?:free|open|closed|required|optional|included|excluded|available|allowed|possible|forbidden|mandatory|necessary|"
    r"valid|needed|unlimited|permitted|covered|empty|full|deprecated|cancelled|\w+(?:ted|sed|ded|ved|red|ned)|\w+ly)\b"
)
_VERDICT = _any(
    r"(?:wrong|incorrect|inaccurate|outdated|obsolete|untrue|nonsense|rubbish|garbage|useless|unhelpful|terrible|awful)\b",
    r"(?:horrible|horrendous|ridiculous|nightmare|disaster|mess|stupid|unacceptable|unclear|misleading|incomplete)\b",
    r"(?:irrelevant|pointless|rude|slow(?:ly)?|disappoint\w*|annoy\w*|frustrat\w*|embarrass\w*|shame\w*|scam|lies?|lying)\b",
    r"(?:sucks?|hate|worst|worse|better|best|pathetic|laughable|unbelievable|unreadable|impossible to|waste)\b",
    r"(?:theft|fed up|sick of|typical|anyway|nothing|dangerous|whatever|wow|yeah)\b",
    r"(?:sounds?|seems?|feels?|looks)(?! (?:for|after)\b) \w+",
    r"a lot\b",
    # "The museum is boring": one word that is no state of things.
    rf"(?:is|are|['’]s|['’]re) {_ADVERBS}(?:(?:so|very|pretty|quite|a bit) )?"
    rf"(?!{_PLAIN_STATES})(?-i:[a-zß-ÿ]{{3,}})[.!]*$",
    r"(?:a joke|no idea|no sense|no use|no help|out of date|made up|off topic|beside the point)\b",
    r"(?:thanks for|of course)\b",
    r"(?:not|\w+n['’]t|never) (?:\w+ )?(?:true|right|correct|accurate|helpful|useful|good|enough|the case|what)\b",
    rf"(?:is|are|was|were|['’]s) {_ADVERBS}(?:so |very |pretty |quite )?(?:old|bad|poor|false|great|good|nice|fine)\b",
    r"old (?:price|info\w*|policy|rule|answer|data|news|version|text)s?\b",
    r"too (?!at\b|on\b|in\b|for\b|since\b|now\b|and\b)\w+",
    r"(?:falsch\w*|veraltet\w*|schlecht\w*|stimmt nicht|unsinn|zu (?:lang|kurz|teuer)|nutzlos)\b",
    r"(?:faux|fausse|dépassée?|mauvaise?|nulle?|trop|inutile)\b",
    r"(?:incorrect[oa]|equivocad[oa]|falso|mal[oa]?|desactualizad[oa]|demasiado|inútil)\b",
    r"(?:sbagliat[oa]|errat[oa]|fals[ao]|pessim[oa]|troppo|poch[ie])\b",
)
_ELSEWHERE = _any(
    r"(?:everywhere|elsewhere|anywhere|next door|other|others|another|competitors?|rip-off)\b",
    r"(?:überall|woanders|anderswo|nebenan|ander(?:e[mnrs]?))\b",
    r"(?:partout|ailleurs|autres?|à côté)\b",
    r"(?:otr[oa]s?|al lado)\b",
    r"(?:altr[oaie]|altrove|dappertutto|accanto)\b",
)
_OTHER_TIMES = _any(
    r"(?:last|next|previous) (?:year|month|week|summer|winter|spring|autumn|season)\b|in the (?:old days|past)\b",
    r"(?:formerly|previously|used to|years ago|back then|soon|tomorrow|one day|going to be)\b",
    r"(?:früher|damals|letzte[ns]?|nächste[ns]?|bald|einst)\b",
    r"(?:autrefois|jadis|avant|l['’]an (?:dernier|prochain)|bientôt)\b",
    r"(?:antes|antiguamente|el año (?:pasado|que viene)|pronto)\b",
    r"(?:prima|una volta|un tempo|l['’]anno (?:scorso|prossimo)|presto)\b",
)
_MARK = regex(r"\b\d{1,2}\s*(?:/|out of|von|sur)\s*(?:5|10|100)\b|\b(?:\d+|one|zero|two) stars?\b", re.IGNORECASE)

_REQUEST = _any(
    r"(?:please|pls|plz|bitte|por favor|svp)\b|s['’]il (?:vous|te) pla[iî]t",
    r"should (?:be (?:shorter|longer|clearer|easier)|(?:say|tell|include|know|add|fix|check|learn|apologi[sz]e))\b",
    r"(?:would|could) (?:be|have|help|like|love|prefer|mean|rather|never)\b",
    r"(?:wish|hope|if only|let['’]?s)\b|per (?:favore|piacere)\b",
    r"(?:sollten?|müssten?|dürften?|wünsch\w*|hoff\w*)\b",
    r"(?:devrai(?:t|ent)|faudrait|souhait\w*|espér\w*|deber[ií]an?|ojalá|dovrebbe(?:ro)?|magari|sper\w+)\b",
)
_ORDERS = regex(
    r"^(?:tell|give|show|keep|stop|make|add|fix|correct|update|check|explain|try|look|learn|translate|remove|let|do|get|"
    r"be|talk|speak|write|say|stick|just|improve|delete|don['’]t|do not|help|connect me|listen|think|compare|put)\b"
    r"(?!-)|"
    r"^\w+ (?:it|this|that|them)(?: (?:with|in|into|to|as|by|for|without|again|up|out|down|more|less|short\w*)\b|\W*$)",
    re.IGNORECASE,
)
_ASKS = regex(
    r"\?[^\w?]*+$|^(?:why|how|where|who|what|can|could|would|will|do|does|did|is|are|has|have|should|warum|wieso|wo|"
    r"wann|pourquoi|comment|où|quand|est-ce|perché|come|quando|dove)\b|"
    r"\b(?:why|which one|how come|por qué|pourquoi|warum|perché)\b",
    re.IGNORECASE,
)
_UNSURE = _any(
    r"(?:maybe|perhaps|probably|possibly|apparently|might be|could be|guess|not sure|unsure|as far as)\b",
    r"(?:vielleicht|wahrscheinlich|peut-être|probablement|quizás?|tal vez|creo|forse|credo|penso|probabilmente)\b",
)

_MOCKS = _any(
    r"(?:l+o+l+|rofl|lmao|wtf|mdr+|ptdr|xd|(?:ha){2,}h?|(?:ja){2,}|a?(?:ah){2,}a*|(?:he){2,}|ha ha)\b",
    r"(?:brilliant|bravo|congratulations|yeah,? right|as if|more like|sure,|great,|nice one|the pope|my ass)(?!\w)",
    r"(?:dass ich nicht lache|na klar|na toll|von wegen|klar doch|glückwunsch)\b",
    r"(?:bien sûr|laissez-moi rire|claro que sí|sí,? claro|enhorabuena|s[iì],? certo|come no|complimenti)\b",
    r"(?:idiots?|idioten|idiot[aei]s?|morons?|imbeciles?|imbécil\w*|imbecill?[ei]|stupid\w*|dumb\w*|liars?|crooks?)\b",
    r"(?:thie(?:f|ves)|scum|fools?|clowns?|bastards?|assholes?|shit\w*|fuck\w*|f\*+\w*|crap|damn\w*)\b",
    r"(?:trottel|deppen?|lügner\w*|betrüger\w*|unfähig\w*|scheiß\w*|verdammt\w*|abzocke)\b",
    r"(?:cons?|connards?|menteurs?|menteuse|voleurs?|arnaque\w*|merde|nul à chier|du vol)\b",
    r"(?:tont[oa]s?|mentiros[oa]s?|ladr(?:ón|ones)|estafa\w*|mierda|bugiard[oaie]|ladr[oi]|truffa\w*|schifo\w*|cretin[oi])\b",
)
_LAUGHS = regex(r"[😂🤣😆😹🙄🤡🖕💩]")
_INSTRUCTS = regex(
    r"\b(?:ignor\w*|forget|disregard|override|vergiss|vergesst|missachte\w*|oublie[rz]?|olvid\w+|dimentica\w*)\b"
    r".{0,40}\b(?:instruct\w*|rules?|prompts?|told|previous|everything|anweisung\w*|regeln?|alles|consignes?|règles?|"
    r"tout|instruccion\w*|reglas?|todo|istruzion\w*|regole|tutto)\b|"
    r"\b(?:system prompt|you are now|from now on,? (?:say|answer|tell|you)|tell everybody|tell everyone)\b",
    re.IGNORECASE,
)
_PERSONAL = regex(
    r"(?<![\w.+-])[\w.+-]++@[\w-]++\.\w[\w.-]*|"  # an e-mail address
    r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,}|"  # an IBAN
    r"\+?\b\d(?:[ ()/.-]{0,2}\d){8,}\b"  # a telephone, a card, an account
)
_VAGUE = _any(
    r"(?:something|somewhere|anything|someone) else\b",
    r"(?:different|another one|the other one|elsewhere|the contrary|the opposite|otherwise|strange|weird)\b",
)


def _narrates(clause: str) -> bool:
    """Whether something is told in the past, other than a change: "the driver ignored it", not "the office moved"."""
    if _NARRATED.search(clause):
        return True
    before = ""
    for match in _PLAIN.finditer(clause.lower()):
        word = match.group()
        # "Opened boxes", "the opened box" and "are opened" narrate nothing.
        if _IN_THE_PAST.fullmatch(word) and before and before not in _NOT_A_DOER and word not in _CHANGES:
            return True
        if not _ADVERB.fullmatch(word):
            before = word
    return False


def is_story(clause: str) -> bool:
    """Whether a clause tells what somebody went through or wants, which is true of nobody else.

    >>> is_story("my refund took 4 weeks"), is_story("refunds take 4 weeks")
    (True, False)
    """
    patterns = (_FIRST_PERSON, _HEARSAY, _WENT_WRONG, _STARTS_A_STORY)
    return any(pattern.search(clause) for pattern in patterns) or _narrates(clause)


def compares(sentence: str) -> bool:
    """Whether a sentence is about others: "it should be 60 days, like everywhere else"."""
    return _ELSEWHERE.search(sentence) is not None


def is_unfair(comment: str) -> bool:
    """Whether a comment laughs, insults or gives orders to a language model: then none of it is meant literally.

    >>> is_unfair("You idiots, it is 14 days"), is_unfair("Useless! It is 14 days")
    (True, False)
    """
    return any(pattern.search(comment) for pattern in (_MOCKS, _LAUGHS, _INSTRUCTS))


def personal_data(text: str) -> set[str]:
    """E-mail addresses, and numbers that are long enough for a telephone, a card or an account.

    >>> sorted(personal_data("Call 0171 2345678. It costs 1,200 euros. Or mail ada@example.com."))
    ['0171 2345678', 'ada@example.com']
    """
    return {data.rstrip(".-") for data in _PERSONAL.findall(text)}


def is_remark(clause: str) -> bool:
    """Whether a clause judges, asks, requests, guesses, speaks of other times, of the answer or to the one who gave it,
    or has personal data.

    >>> is_remark("the answer should mention refunds"), is_remark("the price is wrong"), is_remark("the price is 45")
    (True, True, False)
    """
    clause = _RIGHT_ANSWER.sub("It is", clause)
    if _YOU.search(clause) and not _ANYONE.search(clause):
        return True
    if _VAGUE.search(clause) and not any(character.isdigit() for character in clause):
        return True
    patterns = (_ANSWER, _VERDICT, _MARK, _REQUEST, _ORDERS, _ASKS, _UNSURE, _OTHER_TIMES, _PERSONAL)
    return any(pattern.search(clause) for pattern in patterns)


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

_OPENING = regex(
    r"^(?:(?:(?:no|nope|wrong|incorrect|not (?:true|right|correct)|false|outdated|hm+|well|careful|again|hi|hello|hey|"
    r"correction|update|note|fyi|by the way|btw|ok(?:ay)?|to be fair|unfortunately|nein|falsch|veraltet|non|faux|falso|"
    # "No refunds on Sundays" must not become its contrary.
    r"incorrecto|perdón|no[,.]|sbagliato|errato)\b\s*)+(?:[,.;:!…—–-]+\s*|(?=(?:it|its|they|the|we|you|there)\b))"
    r"|(?:actually|sorry|honestly|in fact)\b[\s,.;:!—–-]*(?:but\s+)?)",
    re.IGNORECASE,
)
_UNFINISHED = regex(r"\b(?:dr|mrs?|ms|prof|st|no|nr|approx|ca|e\.g|i\.e|z\.b|p\.ex)\.$", re.IGNORECASE)
_LONGEST_ENDING = 8  # characters of one of these, or of a day, with the one before it
_DAY = regex(r"\b\d{1,2}\.$")
_MONTH = regex(r"(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
# Only from the first of several spaces, so that a run of them is read once.
_JOINT = regex(r"(?:(?<!\s)\s++)?+[:;,]\s++|(?<!\s)\s++[-—–]++\s++")
_JOINS = regex(r"^(?:and|but|so|und|aber|et|mais|y|pero)\s+", re.IGNORECASE)
_LEANS_BACK = regex(
    r"^(?:not|nor|neither|or|which|who|whose|because|as|than|then|nicht|pas|sondern|sino|no|non|bensì)\b", re.IGNORECASE
)
_LEANS_ON = regex(
    r"^(?:if|when|because|as|although|though|while|unless|until|before|after|instead|wenn|weil|si|quand|cuando)\b",
    re.IGNORECASE,
)
_CONTRAST = regex(
    r"^use\b|\b(?:actually|should be|should have been|now|no longer|any ?more|instead|rather than|changed to|moved to|"
    r"in fact|it(?: i|['’])s|they(?: a|['’])re|really is|at the moment|currently|jetzt|nicht mehr|sondern|statt|"
    r"anstatt|maintenant|désormais|au lieu|ahora|ya no|sino|en vez|en lugar|adesso|ormai|invece|bensì)\b|"
    r"\b(?:not|pas)\b.{1,60}\b(?:but|mais)\b|,\s*(?:not|nicht|pas|non)\b|"
    r",\s*no (?:hasta|el|la|los|las|en|de|a|\d)",
    re.IGNORECASE,
)
_VERB = regex(
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
    """The statement in a comment, without its verdict and other complaints; None if it states nothing.

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
    """The first clauses of a sentence that state something, together."""
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
