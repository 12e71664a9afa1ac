"""How well corrections are told from complaints: the comments that the rules were built on, and others held out.

A comment is a correction if it says, of what a used fact is about, something that another reader would want recalled.
What somebody went through, wants or thinks of the answer is none. The held-out comments were written before the rules,
about other matters than those the rules were built on; no rule was made for one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from heedful.learning.corrections import corrected
from heedful.learning.statements import statement


class Matter(NamedTuple):
    """A question, the facts that its answer used, and what people said of the answer."""

    question: str
    facts: tuple[str, ...]
    corrections: tuple[str, ...]
    complaints: tuple[str, ...]


BUILT_ON: Mapping[str, Matter] = {
    "returns": Matter(
        "How long do I have to return something?",
        ("Returns are accepted within 30 days.", "Returned articles must be in their box."),
        (
            "The window is 45 days now, not 30",
            "No, it is 45 days",
            "Wrong! Returns are accepted within 45 days since May.",
            "Outdated. It's 45 days",
            "45 days, not 30.",
            "You have 45 days, not 30. Please update this.",
            "Terrible answer. Returns are accepted for 60 days since January!",
            "That is wrong, the return window is 45 days",
            "Returned articles no longer need the box",
            "The box is not needed any more for returns",
            "Das stimmt nicht, es sind jetzt 45 Tage",
            "Nein, die Rückgabe ist 45 Tage möglich, nicht 30.",
            "Faux, le délai est de 45 jours maintenant",
            "No, ahora son 45 días para devolver",
            "The 30 days are history, since May it is 45",
            "Actually the limit is 45 days",
        ),
        (
            "Wrong, this is not what I asked",
            "It told me the old policy again and that is just wrong",
            "the answer about refunds is wrong and outdated",
            "I asked about the XL one, not the M",
            "30 days? Really?",
            "30 days is a joke",
            "I returned my parcel 3 weeks ago and nobody answers",
            "Please tell me the exact day",
            "Took 3 tries to get an answer about returns",
            "The answer should mention who pays for the return",
            "I only have 14 days left and the return label does not print",
            "Is it not 45 days?",
            "Still no return label after 5 days",
            "My friend had 60 days, why do I get 30",
            "You ignored my order number 1234",
            "The return of order 48213 was refused",
            "Ich warte seit 3 Wochen auf mein Geld",
            "Bitte auf Deutsch antworten",
            "La réponse est trop longue",
            "Llevo 3 semanas esperando la devolución",
            "30 days is not true any more",
            "It would be nice if returns were possible for 60 days",
        ),
    ),
    "refunds": Matter(
        "How long does a refund take?",
        ("Refunds are paid within 5 days to a gift card.",),
        (
            "Refunds go to the original card",
            "Refunds take 10 days at the moment, not 5",
            "Not right: refunds are paid to the original card, never to a gift card",
            "incorrect, refunds are paid within 14 days",
            "Refund outdated info, it is 4 weeks at the moment",
            "Sorry, but a refund takes 14 days since the new law",
        ),
        (
            "my refund took 4 weeks, not 5 days",
            "still no refund, it has been 14 days since you got the parcel",
            "You promise the money in 5 days and I have been waiting for 12. Please check.",
            "I was told 5 days for my refund, that was 3 weeks ago",
            "where is my money? The parcel reached you 23 days ago",
            "5 days is not true any more for refunds, I wait since 2 weeks",
            "The refund is not on my account after 17 days. Very disappointed.",
            "your colleague said refunds now take 12 days, the bot says 5",
            "The refund for order 47190 never came and nobody answers.",
            "wrong refund information",
            "Refunds are a nightmare with you",
            "Half of it is true, the other half about refunds is old",
        ),
    ),
    "lamp": Matter(
        "What does the Linden lamp cost?",
        ("The Linden desk lamp costs 39 euros.", "The Linden lamp is made in Portugal."),
        (
            "It costs 45 euros now",
            "No, the lamp is 45 euros",
            "The Linden lamp costs 49 euros since March.",
            "It is made in Spain, not in Portugal",
            "Nope, made in Poland, not Portugal",
            "The price is 45 now. Embarrassing.",
            "Die Lampe kostet jetzt 45 Euro",
        ),
        (
            "That price is wrong, the checkout says something else",
            "The price you tell is not the price I see!",
            "old price, at the checkout I paid 45 euros",
            "I was charged 41 euros and not what the bot says",
            "two different prices in one answer, which one is it",
            "wrong price again",
            "Please tell me the price in dollars",
            "39 euros is far too expensive for a lamp",
            "I have asked 3 times for the price of the lamp",
            "The lamp broke after 2 days",
            "Terrible, 2 out of 10",
            "I would never pay 39 euros for that lamp",
            "Tell me about the Oslo lamp, not the Linden",
            "The lamp in the picture is not the Linden",
        ),
    ),
    "cards": Matter(
        "How long are gift cards valid?",
        ("Gift cards are valid for two years.", "Anna Berg leads the gift card team."),
        (
            "Gift cards never expire",
            "No: Jonas leads the team since May",
            "Gift cards are valid for three years",
            "they are valid for 3 years",
            "Anna Berg left, the team is led by Jonas Falk now.",
            "Gift cards can't expire any more, the law changed",
            "Les cartes sont valables 3 ans, pas 2",
        ),
        (
            "My gift card expired after two months",
            "Gift cards are stupid",
            "I never got the gift card",
            "I need a person, please",
            "No idea what to do with my gift card now",
            "I wrote to Anna Berg and she never answered",
            "does not answer my question about gift cards",
            "You keep telling me about gift cards, I want a voucher",
            "had to start the app 3 times to see my gift card",
            "Not valid? Then why did you sell me the card for 50 euros",
            "The link to the gift cards is broken",
        ),
    ),
}

HELD_OUT: Mapping[str, Matter] = {
    "team": Matter(
        "Who is responsible for payroll?",
        ("Maria Lopez runs payroll from the Lisbon office.", "Salaries are paid on the 25th."),
        (
            "Maria left in June, Tom Weber runs payroll now",
            "Payroll is in Porto since last year",
            "Not Maria: Tom Weber does payroll",
            "Salaries are paid on the 28th",
            "It should be the 28th, not the 25th",
            "Payroll has moved to Porto.",
            "wrong person, it's Tom Weber",
            "The payroll office is in Porto, and this is the second time I report it",
            "Das Gehalt kommt am 28., nicht am 25.",
            "No, the right contact is Tom Weber.",
            "Bad answer! Salaries are paid on the last working day of the month.",
        ),
        (
            "Maria never replies to my mails",
            "I am still waiting for the salary of 25 June",
            "I asked who, not when",
            "Not what I wanted to know",
            "Mentioning Maria twice makes no sense",
            "My salary was 200 euros too low, fix it",
            "Give me a phone number of payroll",
            "You should know by now that this is about Lisbon",
            "I was in Lisbon for 2 hours and found nobody of payroll",
            "Can somebody from payroll call me on Monday?",
            "The assistant always says Maria whatever I ask",
            "Nobody in payroll answered me for 10 days",
            "Ich habe nach Urlaub gefragt, nicht nach Gehalt",
        ),
    ),
    "server": Matter(
        "How do I connect to the database server?",
        ("The database server listens on port 5432.", "Connections need a VPN.", "Backups run every night at two."),
        (
            "The port is 6432 since the migration",
            "It listens on 6432, not 5432",
            "A VPN is no longer required",
            "Connections work without VPN now",
            "Backups run every hour, not every night",
            "Use port 6432 instead",
            "The server is db2.example.org and the port is 6432",
            "Backups start at four, you confuse it with the old cluster",
            "False. Port 6432.",
            "There are no nightly backups any more; they run hourly",
            "Le port est 6432, pas 5432",
            "El puerto es 6432, no 5432",
            "Connections need a client certificate instead of a VPN",
        ),
        (
            "Does not work on port 5432 for me",
            "Connection refused, 3 times in a row",
            "I tried port 5432 and 5433 and got a timeout",
            "way too technical",
            "The backup of Tuesday is missing",
            "VPN VPN VPN, I asked about the password",
            "Wrong server, I meant the test one",
            "An example would help to understand how connections work",
            "The steps are in the wrong order",
            "step 2 is missing",
            "you forgot to mention the user name",
            "Copying the port from this page adds a space",
            "It timed out after 30 seconds",
            "Why does it say port 5432 when the file says another one",
            "Explain it without VPN",
            "The answer is from 2019, useless",
            "J'ai essayé 4 fois le port 5432, rien ne marche",
        ),
    ),
    "clinic": Matter(
        "When is the clinic open?",
        ("The clinic is open from 8 to 16 on weekdays.", "Dr. Novak sees children.", "Parking costs 2 euros per hour."),
        (
            "On Fridays the clinic closes at 13",
            "It's open until 18 now",
            "Dr. Novak retired, Dr. Kim sees the children",
            "Parking is free for patients",
            "The clinic is also open on Saturdays",
            "It opens at 7, not 8",
            "Parking costs 3 euros",
            "Hm, actually Dr. Kim sees children now",
            "Die Praxis ist jetzt bis 18 Uhr offen",
            "No, la clínica abre a las 7",
            "Sorry, the clinic is closed on Wednesdays. Please correct that.",
            "Not correct. Children are seen by Dr. Kim since 2024.",
        ),
        (
            "I stood in front of a closed door at 15",
            "We drove 40 minutes and the clinic was closed",
            "Dr. Novak was rude to my son",
            "Waited 2 hours to see Dr. Novak",
            "I asked for the phone number and not for the hours",
            "8 to 16, who can come at such hours",
            "Parking is a disaster there",
            "not a word about Saturdays",
            "The hours were wrong last week too",
            "This is the 4th time it gives the wrong hours",
            "I want an appointment on Friday at 9",
            "Dr. Novak is great but your bot is awful",
            "The hours on the door are different",
            "I paid 8 euros for parking, that is too much",
            "Too long, just give the hours",
            "It repeated the hours 3 times",
            "Keine Antwort auf die Frage nach Samstag",
            "1 star",
            "I hope you will be open on Saturdays some day",
        ),
    ),
}


def is_learnt(comment: str, matter: Matter) -> bool:
    stated = statement(comment)
    return stated is not None and corrected(comment, matter.facts, matter.question) is not None


def test_every_comment_is_judged_one_way_only() -> None:
    said = [each for part in (BUILT_ON, HELD_OUT) for matter in part.values() for each in matter[2] + matter[3]]
    assert len(said) == len(set(said)) > 150
