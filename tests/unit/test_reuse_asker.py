"""Which questions are about whoever asks."""

import pytest

from heedful.sql.reuse.ownership import Person, person
from heedful.sql.reuse.values import Known

NONE = Known({})


@pytest.mark.parametrize(
    "question",
    [
        "What are my orders?",
        "WHAT ARE MY ORDERS?",
        "what are MY orders",
        "Which orders are mine?",
        "Is that mine?",
        "How much did I spend in total?",
        "how much did i spend",
        "Which orders am I waiting for?",
        "What have I’ve paid",
        "What am I paid, if I'm on grade B?",
        "which books im late with",
        "orders for me",
        "Show me orders for me",
        "Show all orders for ME",
        "Find me in the list of customers",
        "Orders that I placed",
        "The easiest class I can take",
        "Tell me about myself",
        "Show me my orders",
        "I want to know what I owe",
        "Give me the orders that were sent to me",
        "When will you send me the parcel?",
        "How much did you give me?",
        "What do you owe me?",
        "What are m\u200by orders?",
        "Ｗhat are ｍｙ orders?",
        "I'd like to buy shoes",
        "Which doctors can I see?",
        "For the degree, I need how many credits?",
        "I need to pay how much?",
        "Where can I find the nearest shop?",
        "¿Qué médicos puedo ver?",
        "Was sind meine Bestellungen?",
        "Wie viel habe ich ausgegeben?",
        "Welche Rechnungen wurden mir geschickt?",
        "Quelles sont mes commandes ?",
        "Combien j'ai dépensé ?",
        "Mon solde, quel est-il ?",
        "¿Cuáles son mis pedidos?",
        "¿Cuánto gasté en total?",
        "¿Qué pedidos tengo?",
        "Welche orders sind mine?",
    ],
)
def test_about_the_asker(question: str) -> None:
    assert person(question, NONE) is Person.ASKER


@pytest.mark.parametrize(
    "question",
    [
        "How many states do we have?",
        "What is our revenue?",
        "Show me the orders of our company",
        "Which parts were sold by us?",
        "How many orders did each of us place?",
        "How many of us are there?",
        "Orders of the rest of us",
        "What did we've sell",
        "Which customers are ours?",
        "Wie hoch ist unser Umsatz?",
        "Quel est notre chiffre d'affaires ?",
        "¿Cuántos clientes tenemos?",
        "¿Cuáles son nuestras ventas?",
    ],
)
def test_about_the_asker_among_others(question: str) -> None:
    assert person(question, NONE) is Person.GROUP


@pytest.mark.parametrize(
    "question",
    [
        "Give me the cities in Texas",
        "show me all the major lakes in the us",
        "what can you tell me about the population of missouri",
        "Could you please tell us which rivers are in Texas?",
        "can you tell me the capital of ohio",
        "Please show me the orders",
        "Find the largest state and tell me its capital",
        "Let me see the orders",
        "Would you mind informing me what all of the classes are?",
        "Can I see the orders of Ann?",
        "May I know all of the open orders?",
        "Can I get a list of the shops in Hull?",
        "Hello, I want to see the orders of Ann",
        "How many A.I. papers are there?",
        "I/O errors by disk",
        "I want to know how many shops there are",
        "I'd like to see the orders",
        "I need a list of the papers by B",
        "I am looking for papers by B",
        "which us city has the highest population",
        "how many rivers are there in us",
        "name all the lakes of us",
        "Customers in the US",
        "Sales to US customers",
        "Sales to U.S. customers",
        "When did World War I end, by country?",
        "papers by Michael I. Jordan",
        "Which coal mine is the deepest?",
        "How many loans were there on the last Mon?",
        "How many flights leave from MA on Mon?",
        "How many chow mein dishes were sold?",
        "Umsatz im März je Kunde",
        "Zeig mir die Bestellungen von Ann",
        "Montre-moi les commandes de la ville",
        "Ventas por mes en el norte",
        "How many mines are there?",
        "What is the time?",
    ],
)
def test_about_nobody_who_asks(question: str) -> None:
    assert person(question, NONE) is Person.NOBODY


def test_a_name_that_a_column_holds_is_no_pronoun_where_it_is_written_as_one() -> None:
    films = Known({("film", "title"): ["My Fair Lady", "Alien"], ("page", "title"): ["My Orders"]})
    assert person("Who directed My Fair Lady?", films) is Person.NOBODY
    assert person("When did I see My Fair Lady?", films) is Person.ASKER
    assert person("Who directed my fair lady?", films) is Person.ASKER
    assert person("What are My Orders?", films) is Person.ASKER
