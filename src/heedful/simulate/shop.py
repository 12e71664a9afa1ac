"""A web shop as data: what its help desk knows, what people want to know, and its database with questions about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Literal

Language = Literal["en", "de", "es"]
Quality = Literal["good", "mixed", "bad"]
"""The quality of an answer."""

HELP = "help"
HANDBOOK = "handbook"

FACTS: Mapping[str, Mapping[str, str]] = {
    HELP: {
        # Refunds and returns
        "refund-time": "A refund reaches you within 5 days after the parcel has come back to us.",
        "refund-word": "How refunds work and how long a refund takes is explained in your account.",
        "refund-card": "Refunds go to the card or account that paid for the order.",
        "refund-gift": "Whoever got a present receives a voucher instead of money when it is sent back.",
        "refund-part": "If one item of an order comes back, we pay back that item and no shipping.",
        "refund-sale": "Articles from the clearance sale can be exchanged, and are not paid back.",
        "return-window": "Articles can be returned within 30 days after they arrived.",
        "return-old": "You can return articles within 14 days; the time limit for returns is 14 days.",
        "return-label": "To return a parcel, print the label from your account; sending articles back is free.",
        "return-box": "How to return a parcel or send an article back: in its box, and well packed.",
        "return-abroad": "Who returns a parcel from Norway, Switzerland or elsewhere outside the EU pays for it.",
        "return-worn": "Shoes and clothes must be unworn, with their tags, when they come back.",
        "return-shop": "Our shops in Porto and Ghent take parcels back without a label.",
        # Shipping
        "ship-free": "Shipping is free for orders above 50 euros.",
        "ship-price": "Shipping with the standard service is 4.90 euros, express shipping is 12 euros.",
        "ship-word": "When shipping is free and what shipping costs is explained on the page about shipping.",
        "ship-time": "Standard parcels arrive in 3 to 5 working days.",
        "ship-time-word": "How long delivery takes and how many days until a parcel arrives is told at the checkout.",
        "ship-express": "Express parcels that are ordered before noon arrive on the next working day.",
        "ship-island": "To islands, add 2 working days and 6 euros.",
        "ship-track": "The tracking number is in the e-mail that says your parcel has left.",
        "ship-lost": "A parcel that has not moved for 7 days is searched for by us; write to the help desk.",
        "ship-address": "The address can be changed until the parcel is packed, in the app under Orders.",
        "ship-neighbour": "If nobody is at home, the parcel goes to a neighbour or to a parcel shop.",
        "ship-abroad": "We ship abroad to all countries of the EU, to Norway and to Switzerland.",
        "ship-split": "Large orders may come in several parcels, each with its own number.",
        # Prices
        "price-old": "The Linden desk lamp costs 39 euros.",
        "price-new": "The Linden desk lamp is 45 euros since this spring.",
        "price-plus": "The price of a Plus membership is 29 euros a year, with 5% off everything.",
        "price-plus-old": "Plus costs 19 euros a year; the price of Plus is worth it.",
        "price-student": "Students get 10% off with a card from their university.",
        "price-match": "If you find an article cheaper elsewhere within a week, we pay the difference.",
        "price-voucher": "A voucher is typed in at the checkout, one for each order.",
        "price-voucher-age": "Vouchers are good for 3 years.",
        "price-tax": "All prices have the value-added tax in them.",
        "price-business": "Companies see prices without tax after they have entered their tax number.",
        "price-invoice": "Invoices are in the account under Orders, as PDF.",
        "price-instal": "Orders above 150 euros can be paid in three parts without interest.",
        "price-pay": "We take cards, PayPal, Klarna and bank transfers.",
        # Accounts
        "account-code": "If you forgot your password, ask for a one-time code under Sign in.",
        "account-rules": "How to reset a password: your new password must have at least twelve characters.",
        "account-expire": "The e-mail for a new password can be used for fifteen minutes.",
        "account-lock": "After five wrong attempts an account is locked for an hour.",
        "account-mail": "Change your e-mail address under Settings, Contact; both addresses get a message.",
        "account-delete": "Accounts are deleted under Settings, Privacy, and are gone after 30 days.",
        "account-guest": "Guests find their order with its number and their postcode, without an account.",
        "account-two": "A second factor is turned on under Settings, Security.",
        "account-news": "The newsletter ends with the link at its bottom.",
        "account-app": "The app runs on phones with Android 11 or iOS 16 and newer.",
        "account-app-old": "The app runs on all phones; if it does not start, install the app again.",
        "account-family": "Up to four people can share a Plus membership.",
        "account-data": "A copy of your data comes by e-mail within a week after you asked for it under Privacy.",
        # Warranty
        "warranty-time": "Electric articles have a warranty of 3 years.",
        "warranty-old": "The warranty on electric articles such as a lamp or a toaster is 2 years.",
        "warranty-water": "Damage by water and falls is not repaired free of charge.",
        "warranty-claim": "For a warranty claim, send a photo of the damage and the invoice.",
        "warranty-wood": "Tables and chairs of wood have 5 years, and need oil once a year.",
        "warranty-battery": "Batteries lose strength; below 70% in the first 2 years we replace them.",
        "warranty-parts": "Spare parts are sold for 8 years after a model has ended.",
        "warranty-broken": "What arrives broken is replaced at once; report it within 48 hours.",
        "warranty-second": "Used articles have a year of warranty.",
        # For those who ask in their own language
        "return-window-de": "Artikel können innerhalb von 30 Tagen zurückgegeben werden.",
        "ship-time-de": "Die Lieferung dauert drei bis fünf Werktage.",
        "account-code-de": "Passwort vergessen? Unter Anmelden gibt es einen Code zum einmaligen Gebrauch.",
        "warranty-time-de": "Die Garantie auf elektrische Artikel beträgt 3 Jahre.",
        "return-window-es": "Un artículo se puede devolver durante 30 días.",
        "account-code-es": "Si ha olvidado su contraseña, pida un código al iniciar sesión.",
        "warranty-install": "Lamps that are wired to the ceiling must be put up by an electrician.",
    },
    HANDBOOK: {
        "staff-refund-limit": "A refund of up to 80 euros needs no approval.",
        "staff-refund-old": "Every refund needs the approval of the lead of the shift.",
        "staff-goodwill": "A voucher of 10 euros may be given once a year to a customer who had to wait.",
        "staff-escalate": "Complaints with a lawyer in them go to legal@ on the same day.",
        "staff-tone": "Write short sentences, say sorry once, and say what happens next.",
        "staff-language": "Answer in the language of the customer; ask the pool for Polish and Dutch.",
        "staff-id": "Before you talk about an order, ask for its number and the postcode.",
        "staff-fraud": "Three orders to one address in a day are held back until somebody has looked.",
        "staff-shift": "Early shift begins at 7:30, late shift at 13:30; swap shifts in the calendar.",
        "staff-break": "A break of 30 minutes is due after six hours.",
        "staff-sick": "Who is ill calls the lead before the shift, and sends the paper on the third day.",
        "staff-holiday": "Holidays are asked for in the portal, four weeks ahead.",
        "staff-lost": "For a lost parcel, open a search with the carrier and send a new one after 7 days.",
        "staff-damage": "For a broken article, ask for a photo and send another; we don't want it back.",
        "staff-business": "Companies with more than 20 orders a month have an account manager.",
        "staff-press": "Journalists are sent to press@; say nothing about figures.",
        "staff-system": "When the order system is down, write the orders into the emergency sheet.",
        "staff-vpn": "From home, work only over the VPN; the token is in the drawer of the lead.",
        "staff-rating": "Answers below three stars are read by the team every Monday.",
        "staff-macro": "Text blocks are kept in the tool under Snippets, and are checked each quarter.",
    },
}

OUTDATED_REFUND, OUTDATED_SHIPPING = "refund-time", "ship-free"
"""Become wrong in the first week; customers say so before staff do."""

CORRECTIONS: Mapping[str, str] = {
    OUTDATED_REFUND: "A refund takes up to 3 weeks at the moment, counted from when the parcel has come back to us.",
    OUTDATED_SHIPPING: "Shipping is free for orders above 40 euros.",
}
"""The texts that staff put in their place, when they get to it in the review queue."""

REPLACED: Mapping[str, str] = {
    "return-old": "return-window",
    "price-old": "price-new",
    "price-plus-old": "price-plus",
    "account-app-old": "account-app",
    "warranty-old": "warranty-time",
    "staff-refund-old": "staff-refund-limit",
    "refund-word": "refund-time",
    "return-box": "return-label",
    "ship-word": "ship-free",
    "ship-time-word": "ship-time",
    "account-rules": "account-code",
}
"""Facts of pages that are old or only point elsewhere, and those that have been right all along."""


@dataclass(frozen=True, slots=True)
class Want:
    """Something people want to know, in the ways they ask; `answers` are the keys of the facts that are right."""

    answers: tuple[str, ...]
    queries: Mapping[Language, tuple[str, ...]] = field(hash=False)
    weight: float = 1.0


def _want(answers: str, en: str, de: str = "", es: str = "", weight: float = 1.0) -> Want:
    languages: dict[Language, str] = {"en": en, "de": de, "es": es}
    queries = {language: tuple(text.split(" | ")) if text else () for language, text in languages.items()}
    return Want(tuple(answers.split()), queries, weight)


WANTS: tuple[Want, ...] = (
    _want(
        "refund-time",
        "How long does a refund take? | how long until I get my refund | When will my refund arrive? | "
        "I sent it back, how long does the refund take | refund still not here, how long does it take? | "
        "How many days for a refund?",
        de="Wie lange dauert die Rückzahlung? | Wann kommt meine Rückzahlung?",
        es="¿Cuánto tarda el reembolso?",
        weight=3.2,
    ),
    _want(
        "return-window return-window-de return-window-es",
        "How long can I return articles? | until when can I return something | What is the time limit for returns? | "
        "can I still return my articles after three weeks?",
        de="Wie lange kann ich Artikel zurückgeben?",
        es="¿Hasta cuándo puedo devolver un artículo?",
        weight=2.4,
    ),
    _want(
        "return-label",
        "How do I return a parcel? | how can I send an article back | Where do I get a label for my return?",
        weight=1.8,
    ),
    _want(
        "return-abroad",
        "How do I return a parcel from Norway? | send an article back from Switzerland, is it free? | "
        "return from abroad",
        weight=0.7,
    ),
    _want(
        "refund-card",
        "Where does my refund go? | to which account is a refund paid | I paid by card, where is the refund sent?",
    ),
    _want("refund-sale", "Can I get a refund for sale articles? | refund for something from the sale?"),
    _want(
        "ship-free",
        "When is shipping free? | free shipping from which amount | How much must I order for free shipping? | "
        "what are the shipping costs and when is shipping free?",
        de="Ab wann ist der Versand kostenlos?",
        es="¿Cuándo es gratis el envío?",
        weight=1.8,
    ),
    _want("ship-price", "What does express shipping cost? | price of standard shipping?"),
    _want(
        "ship-time ship-time-de",
        "How long does delivery take? | when does my standard parcel arrive | how many days until a parcel arrives?",
        de="Wie lange dauert die Lieferung?",
        weight=2,
    ),
    _want("ship-track", "Where is my parcel? | where do I find the tracking number", weight=1.2),
    _want(
        "ship-lost",
        "My parcel is lost, what now? | my parcel has not moved for days | tracking says nothing for a week",
    ),
    _want("ship-address", "Can I change the delivery address? | wrong address on my order, help"),
    _want("ship-abroad", "Do you deliver to Norway? | do you ship abroad?"),
    _want(
        "price-new",
        "What does the Linden desk lamp cost? | How much is the Linden lamp? | price of the desk lamp Linden | "
        "Linden desk lamp how many euros",
        de="Was kostet die Lampe Linden?",
        es="¿Cuánto cuesta la lámpara Linden?",
        weight=2.2,
    ),
    _want(
        "price-plus",
        "What does Plus cost? | how much does Plus cost a year | Is Plus worth its price? | "
        "what is the price of a Plus membership?",
        weight=2.2,
    ),
    _want("price-student", "Is there a discount for students? | student discount?"),
    _want("price-voucher", "Where do I enter a voucher? | my voucher does not work, where to type it?"),
    _want("price-voucher-age", "How long are vouchers good? | does my voucher run out?"),
    _want("price-invoice", "Where is my invoice? | I need an invoice as PDF"),
    _want("price-instal price-pay", "Can I pay in parts? | which ways to pay are there?"),
    _want(
        "account-code account-code-de account-code-es",
        "I forgot my password | How do I reset my password? | can't sign in, password is wrong | need a new password",
        de="Ich habe mein Passwort vergessen",
        es="He olvidado mi contraseña",
        weight=2.2,
    ),
    _want("account-lock", "Why is my account locked? | my account is locked after wrong attempts"),
    _want("account-guest", "How do I find my order without an account? | I ordered as a guest"),
    _want(
        "account-app",
        "The app does not start on my phone | which phones does the app run on? | app won't start, old Android",
        de="Die App startet nicht",
        weight=2,
    ),
    _want("account-delete", "How do I delete my account? | delete everything you have about me"),
    _want("account-mail", "How can I change my e-mail address? | new e-mail address"),
    _want(
        "warranty-time warranty-time-de",
        "How long is the warranty on electric articles? | is my lamp still under warranty | "
        "warranty for a toaster, how many years? | How many years of warranty do I have?",
        de="Wie lange habe ich Garantie?",
        weight=2.2,
    ),
    _want("warranty-broken", "My article arrived broken | the glass was broken when it came"),
    _want("warranty-claim", "How do I claim the warranty? | what do you need for a warranty claim?"),
    _want("warranty-battery", "The battery is weak after a year | is a weak battery replaced?"),
    _want("warranty-water", "It fell into water, is that repaired? | my headphones fell down"),
)

STAFF_WANTS: tuple[Want, ...] = (
    _want("staff-refund-limit", "How much refund may I give alone? | does a refund need approval?", weight=2),
    _want("staff-lost", "A customer's parcel is lost, what do I do? | when do I send a new parcel?"),
    _want("staff-damage", "Do we want broken articles back? | article arrived broken, what to do"),
    _want("staff-goodwill", "May I give a voucher for waiting? | how much goodwill is fine"),
    _want("staff-shift", "When does the late shift begin? | how do I swap my shift?"),
    _want("staff-language", "A customer writes Polish, what now? | which language do I answer in"),
)


FILE = "shop.sqlite"

COUNTRIES = ("Portugal", "Spain", "Germany", "Belgium", "Norway")
STATES = ("delivered", "delivered", "delivered", "delivered", "shipped", "returned", "cancelled")
PRODUCTS = (
    ("Linden desk lamp", "lamps", 45.0),
    ("Aspen floor lamp", "lamps", 119.0),
    ("Rowan ceiling lamp", "lamps", 79.0),
    ("Oak table", "furniture", 389.0),
    ("Birch chair", "furniture", 99.0),
    ("Elm shelf", "furniture", 149.0),
    ("Juniper toaster", "kitchen", 54.0),
    ("Hazel kettle", "kitchen", 39.0),
    ("Maple headphones", "sound", 129.0),
    ("Cedar speaker", "sound", 89.0),
    ("Willow rug", "textiles", 159.0),
    ("Alder blanket", "textiles", 49.0),
)

_SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL, tier TEXT NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, price REAL NOT NULL);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL,
    total REAL NOT NULL,
    status TEXT NOT NULL,
    ordered_on TEXT NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class DataQuestion:
    """A question about data in many words, and its SQL; `wrong` is what somebody runs before they know better."""

    questions: tuple[str, ...]
    sql: str
    wrong: str | None = None
    why: str | None = None
    """The comment of people on the wrong SQL."""


def _orders_from(country: str) -> DataQuestion:
    return DataQuestion(
        (
            f"How many orders are there from {country}?",
            f"how many orders came from {country}",
            f"number of orders from {country}",
        ),
        "SELECT count(*) AS orders FROM orders JOIN customers ON customers.id = orders.customer_id "
        f"WHERE customers.country = '{country}'",
    )


REPORTS: Sequence[DataQuestion] = (
    _orders_from("Portugal"),
    _orders_from("Germany"),
    _orders_from("Norway"),
    DataQuestion(
        ("What is the total revenue?", "what is our total revenue", "total revenue, please"),
        "SELECT round(sum(total), 2) AS revenue FROM orders WHERE status NOT IN ('cancelled', 'returned')",
        "SELECT round(sum(total), 2) AS revenue FROM orders",
        "Counts orders that were cancelled or returned",
    ),
    DataQuestion(
        ("How many orders were returned?", "number of returned orders", "how many returned orders are there"),
        "SELECT count(*) AS orders FROM orders WHERE status = 'returned'",
    ),
    DataQuestion(
        ("How many orders were cancelled?", "number of cancelled orders"),
        "SELECT count(*) AS orders FROM orders WHERE status = 'cancelled'",
    ),
    DataQuestion(
        ("Which five products sell best?", "the five products that sell best", "top five products by quantity"),
        "SELECT products.name, sum(orders.quantity) AS sold FROM orders JOIN products "
        "ON products.id = orders.product_id WHERE orders.status <> 'cancelled' "
        "GROUP BY products.name ORDER BY sold DESC, products.name LIMIT 5",
        "SELECT name, price AS sold FROM products ORDER BY price DESC LIMIT 5",
        "These are the most expensive ones, not those that sell best",
    ),
    DataQuestion(
        ("How many customers does each tier have?", "customers by tier", "how many customers are in each tier"),
        "SELECT tier, count(*) AS customers FROM customers GROUP BY tier ORDER BY tier",
    ),
    DataQuestion(
        ("What is the average order value?", "average value of an order", "what is the average value of orders"),
        "SELECT round(avg(total), 2) AS average FROM orders",
    ),
    DataQuestion(
        ("Which category is returned most often?", "category with the most returns"),
        "SELECT products.category, count(*) AS returned FROM orders JOIN products "
        "ON products.id = orders.product_id WHERE orders.status = 'returned' "
        "GROUP BY products.category ORDER BY returned DESC, products.category LIMIT 1",
    ),
    DataQuestion(
        ("How many orders are on their way?", "how many orders are shipped and not delivered"),
        "SELECT count(*) AS orders FROM orders WHERE status = 'shipped'",
        "SELECT count(*) AS orders FROM orders WHERE status <> 'delivered'",
        "That has the cancelled ones in it, too",
    ),
    DataQuestion(
        ("What do lamps cost on average?", "average price of lamps"),
        "SELECT round(avg(price), 2) AS price FROM products WHERE category = 'lamps'",
    ),
)

PRAISE = (
    "Matches the figures of accounting",
    "Checked by hand, right",
    "Yes, that's it",
    "The same as last month's sheet",
)


def build(file: Path, until: datetime, random: Random) -> None:
    """Makes the shop's database."""
    customers = [
        (number, f"Customer {number}", random.choice(COUNTRIES), random.choice(("free", "free", "plus", "business")))
        for number in range(1, 81)
    ]
    products = [(number, *product) for number, product in enumerate(PRODUCTS, start=1)]
    orders = []
    for number in range(40_001, 40_601):
        product, quantity = random.choice(products), random.choice((1, 1, 1, 2, 3))
        day = until - timedelta(days=random.randint(1, 90))
        customer, state = random.randint(1, len(customers)), random.choice(STATES)
        total = quantity * product[3]
        orders.append((number, customer, product[0], quantity, total, state, f"{day:%Y-%m-%d}"))
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript(_SCHEMA)
        database.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", customers)
        database.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", products)
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)", orders)
