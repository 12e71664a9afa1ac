"""A web shop as data: what its help desk knows, what people want to know, and its database with questions about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Literal

Quality = Literal["good", "bad"]
"""The quality of an answer."""

HELP = "help"
HANDBOOK = "handbook"

FACTS: Mapping[str, Mapping[str, str]] = {
    HELP: {
        # Refunds and returns
        "refund-time": "A refund reaches you within 5 days after the parcel has come back to us.",
        "refund-card": "Refunds go to the card or account that paid for the order.",
        "refund-gift": "If a present is returned, the recipient gets a voucher instead of money.",
        "refund-part": "If one item of an order comes back, we refund that item but not the shipping.",
        "refund-sale": "Clearance articles can be exchanged but not refunded.",
        "return-window": "Articles can be returned within 30 days after they arrived.",
        "return-old": "You can return articles within 14 days; the time limit for returns is 14 days.",
        "return-label": "To return a parcel, print the label from your account; returns are free.",
        "return-abroad": "Returns from Norway, Switzerland and other countries outside the EU are at your expense.",
        "return-worn": "Shoes and clothes must be unworn, with their tags, when they come back.",
        "return-shop": "Our shops in Porto and Ghent take parcels back without a label.",
        # Shipping
        "ship-free": "Shipping is free for orders above 50 euros.",
        "ship-price": "Standard shipping is 4.90 euros, express shipping is 12 euros.",
        "ship-time": "Standard parcels arrive in 3 to 5 working days.",
        "ship-express": "Express parcels ordered before noon arrive on the next working day.",
        "ship-track": "The tracking number is in the e-mail that says your parcel has left.",
        "ship-lost": "If a parcel has not moved for 7 days, write to the help desk and we search for it.",
        "ship-address": "You can change the address in the app under Orders until the parcel is packed.",
        "ship-neighbour": "If nobody is at home, the parcel goes to a neighbour or to a parcel shop.",
        "ship-abroad": "We ship abroad to all countries of the EU, to Norway and to Switzerland.",
        "ship-split": "Large orders may come in several parcels, each with its own tracking number.",
        # Prices
        "price-plus": "A Plus membership costs 29 euros a year and gives 5% off everything.",
        "price-old": "The Linden desk lamp costs 39 euros.",
        "price-new": "The Linden desk lamp is 45 euros since this spring.",
        "price-student": "Students get 10% off with a card from their university.",
        "price-match": "If you find an article cheaper elsewhere within a week, we refund the difference.",
        "price-voucher": "Enter your voucher at the checkout; each order takes one voucher.",
        "price-voucher-age": "Vouchers are valid for 3 years.",
        "price-tax": "All prices include value-added tax.",
        "price-invoice": "Invoices are in the account under Orders, as PDF.",
        "price-instal": "Orders above 150 euros can be paid in three parts without interest.",
        "price-pay": "We take cards, PayPal, Klarna and bank transfers.",
        # Accounts
        "account-code": "If you forgot your password, ask for a one-time code under Sign in.",
        "account-rules": "How to reset a password: your new password must have at least twelve characters.",
        "account-lock": "After five wrong attempts an account is locked for an hour.",
        "account-mail": "Change your e-mail address under Settings, Contact; both addresses get a message.",
        "account-delete": "Delete your account under Settings, Privacy; it is gone after 30 days.",
        "account-guest": "Guests find their order with its number and their postcode, without an account.",
        "account-two": "Turn on two-factor authentication under Settings, Security.",
        "account-app": "The app runs on phones with Android 11 or iOS 16 and newer.",
        "account-app-old": "The app runs on all phones; if it does not start, install the app again.",
        # Warranty
        "warranty-time": "Electric articles have a warranty of 3 years.",
        "warranty-old": "The warranty on electric articles such as a lamp or a toaster is 2 years.",
        "warranty-water": "The warranty does not cover damage by water or falls.",
        "warranty-claim": "For a warranty claim, send a photo of the damage and the invoice.",
        "warranty-battery": "We replace a battery that falls below 70% in the first 2 years.",
        "warranty-broken": "Articles that arrive broken are replaced at once; report them within 48 hours.",
    },
    HANDBOOK: {
        "staff-refund-limit": "A refund of up to 80 euros needs no approval.",
        "staff-goodwill": "You may give a voucher of 10 euros once a year to a customer who had to wait.",
        "staff-escalate": "Forward complaints that mention a lawyer to legal@ on the same day.",
        "staff-tone": "Write short sentences, apologize once, and say what happens next.",
        "staff-language": "Answer in the language of the customer; ask the pool for Polish and Dutch.",
        "staff-id": "Before you talk about an order, ask for its number and the postcode.",
        "staff-fraud": "Three orders to one address in a day are held back until somebody has looked.",
        "staff-shift": "The early shift begins at 7:30, the late shift at 13:30; swap shifts in the calendar.",
        "staff-sick": "If you are ill, call the lead before your shift.",
        "staff-holiday": "Ask for holidays in the portal, four weeks ahead.",
        "staff-lost": "For a lost parcel, open a search with the carrier and send a new one after 7 days.",
        "staff-damage": "For a broken article, ask for a photo and send another; we don't want it back.",
        "staff-press": "Forward journalists to press@ and give no figures.",
        "staff-vpn": "From home, work only over the VPN.",
    },
}

OUTDATED = "price-plus"
"""Becomes wrong in the first week; customers say so before staff do."""

CORRECTION = "A Plus membership costs 35 euros a year and gives 5% off everything."
"""The text with which staff replace it in the review queue."""

OLD_PAGES = ("return-old", "price-old", "account-app-old", "warranty-old", "account-rules")
"""Facts that have been wrong all along, or only point elsewhere."""


@dataclass(frozen=True, slots=True)
class Want:
    """Something people want to know, in the ways they ask; `answer` is the key of the fact that is right."""

    answer: str
    queries: tuple[str, ...]
    weight: float = 1.0


def _want(answer: str, queries: str, weight: float = 1.0) -> Want:
    return Want(answer, tuple(queries.split(" | ")), weight)


WANTS: tuple[Want, ...] = (
    _want(
        "price-plus",
        "What does Plus cost? | How much does Plus cost a year? | What does a Plus membership cost?",
        weight=26,
    ),
    _want(
        "refund-time",
        "How long does a refund take? | How long until I get my refund? | When will my refund arrive?",
        weight=1.5,
    ),
    _want(
        "return-window",
        "How long can I return articles? | Until when can I return something? | What is the time limit for returns?",
        weight=2,
    ),
    _want("return-label", "How do I return a parcel? | How can I send an article back?"),
    _want("return-abroad", "How do I return a parcel from Norway? | Is sending back from Switzerland free?"),
    _want("refund-card", "Where does my refund go? | To which account is a refund paid?"),
    _want("refund-sale", "Can I get a refund for sale articles? | Is there a refund for clearance articles?"),
    _want("ship-free", "When is shipping free? | How much must I order for free shipping?", weight=1.5),
    _want("ship-price", "What does express shipping cost? | What is the price of standard shipping?"),
    _want("ship-time", "How long does delivery take? | How many days until a parcel arrives?", weight=1.5),
    _want("ship-track", "Where is the tracking number? | Where do I find the tracking number?"),
    _want("ship-lost", "My parcel is lost, what now? | My parcel has not moved for days"),
    _want("ship-address", "Can I change the delivery address? | How do I change the address of my order?"),
    _want("ship-abroad", "Do you deliver to Norway? | Do you ship abroad?"),
    _want("price-new", "What does the Linden desk lamp cost? | How much is the Linden lamp?", weight=2),
    _want("price-student", "Is there a discount for students? | Do students pay less?"),
    _want("price-voucher", "Where do I enter a voucher? | How do I use my voucher?"),
    _want("price-voucher-age", "How long are vouchers valid? | Does my voucher expire?"),
    _want("price-invoice", "Where is my invoice? | I need an invoice as PDF"),
    _want("account-code", "I forgot my password | How do I reset my password? | I need a new password", weight=2),
    _want("account-lock", "Why is my account locked? | How long is my account locked?"),
    _want("account-guest", "How do I find my order without an account? | Where is my order if I am a guest?"),
    _want("account-app", "The app does not start on my phone | Which phones does the app run on?", weight=2),
    _want("account-delete", "How do I delete my account? | I want to delete my account"),
    _want("account-mail", "How can I change my e-mail address? | I have a new e-mail address"),
    _want(
        "warranty-time",
        "How long is the warranty on electric articles? | How many years of warranty does a lamp have?",
        weight=2,
    ),
    _want("warranty-broken", "My article arrived broken | My article was broken when it arrived"),
    _want("warranty-claim", "How do I claim the warranty? | What do you need for a warranty claim?"),
    _want("warranty-battery", "Is a weak battery replaced? | The battery is weak after a year"),
    _want("warranty-water", "Does the warranty cover damage by water? | Is damage by a fall covered?"),
)

STAFF_WANTS: tuple[Want, ...] = (
    _want("staff-refund-limit", "How much may I refund without approval? | Does a refund need approval?"),
    _want("staff-lost", "A customer's parcel is lost, what do I do? | How do I search for a lost parcel?"),
    _want("staff-damage", "Do we want broken articles back? | What do I do about a broken article?"),
    _want("staff-goodwill", "May I give a voucher for waiting? | When may I give a voucher?"),
    _want("staff-shift", "When does the late shift begin? | How do I swap my shift?"),
    _want("staff-language", "In which language do I answer? | Which language do I use for a customer?"),
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
        "Those are the most expensive products",
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
        "That counts cancelled orders",
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
