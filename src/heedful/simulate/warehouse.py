"""The shop's database, and what people who count things ask of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

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
class Report:
    """A question about data in many words, and its SQL; `wrong` is what somebody runs before they know better."""

    questions: tuple[str, ...]
    sql: str
    wrong: str | None = None
    why: str | None = None
    """What people say of the wrong SQL."""


def _orders_from(country: str) -> Report:
    return Report(
        (
            f"How many orders are there from {country}?",
            f"how many orders came from {country}",
            f"number of orders from {country}",
        ),
        "SELECT count(*) AS orders FROM orders JOIN customers ON customers.id = orders.customer_id "
        f"WHERE customers.country = '{country}'",
    )


REPORTS: Sequence[Report] = (
    _orders_from("Portugal"),
    _orders_from("Germany"),
    _orders_from("Norway"),
    Report(
        ("What is the total revenue?", "what is our total revenue", "total revenue, please"),
        "SELECT round(sum(total), 2) AS revenue FROM orders WHERE status NOT IN ('cancelled', 'returned')",
        "SELECT round(sum(total), 2) AS revenue FROM orders",
        "Counts orders that were cancelled or returned",
    ),
    Report(
        ("How many orders were returned?", "number of returned orders", "how many returned orders are there"),
        "SELECT count(*) AS orders FROM orders WHERE status = 'returned'",
    ),
    Report(
        ("How many orders were cancelled?", "number of cancelled orders"),
        "SELECT count(*) AS orders FROM orders WHERE status = 'cancelled'",
    ),
    Report(
        ("Which five products sell best?", "the five products that sell best", "top five products by quantity"),
        "SELECT products.name, sum(orders.quantity) AS sold FROM orders JOIN products "
        "ON products.id = orders.product_id WHERE orders.status <> 'cancelled' "
        "GROUP BY products.name ORDER BY sold DESC, products.name LIMIT 5",
        "SELECT name, price AS sold FROM products ORDER BY price DESC LIMIT 5",
        "These are the most expensive ones, not those that sell best",
    ),
    Report(
        ("How many customers does each tier have?", "customers by tier", "how many customers are in each tier"),
        "SELECT tier, count(*) AS customers FROM customers GROUP BY tier ORDER BY tier",
    ),
    Report(
        ("What is the average order value?", "average value of an order", "what is the average value of orders"),
        "SELECT round(avg(total), 2) AS average FROM orders",
    ),
    Report(
        ("Which category is returned most often?", "category with the most returns"),
        "SELECT products.category, count(*) AS returned FROM orders JOIN products "
        "ON products.id = orders.product_id WHERE orders.status = 'returned' "
        "GROUP BY products.category ORDER BY returned DESC, products.category LIMIT 1",
    ),
    Report(
        ("How many orders are on their way?", "how many orders are shipped and not delivered"),
        "SELECT count(*) AS orders FROM orders WHERE status = 'shipped'",
        "SELECT count(*) AS orders FROM orders WHERE status <> 'delivered'",
        "That has the cancelled ones in it, too",
    ),
    Report(
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
        orders.append(
            (
                number,
                random.randint(1, len(customers)),
                product[0],
                quantity,
                quantity * product[3],
                random.choice(STATES),
                f"{day:%Y-%m-%d}",
            )
        )
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript(_SCHEMA)
        database.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", customers)
        database.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", products)
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)", orders)
