"""Questions that are phrased in another way and ask the same, and those that only look like it."""

from __future__ import annotations

from datetime import datetime

import pytest

from heedful.sql.reuse.decision import decide
from heedful.sql.reuse.values import Known

STATUS = ["cancelled", "completed"]
TABLES = {"maker": "drugs", "name": "people", "status": "visits"}
NOW = datetime(2026, 11, 17, 9)
VALUES = Known(
    {
        ("drugs", "maker"): ["Bayer", "Pfizer"],
        ("people", "name"): ["Ann Lee", "Olga Pell", "Bob Ray"],
        ("visits", "status"): STATUS,
    }
)


def asks_the_same(proven: str, asked: str) -> bool:
    conditions = [
        f"{column} = '{value}'"
        for column, names in (("maker", ["Bayer"]), ("name", ["Ann Lee", "Olga Pell", "Bob Ray"]), ("status", STATUS))
        for value in names
        if value in proven
    ]
    sql = f"SELECT id FROM {TABLES[conditions[0].split()[0]]} WHERE {conditions[0]}" if conditions else "SELECT 1"
    verdict = decide(asked, proven, sql, dialect="sqlite", values=VALUES, now=NOW, proven_at=NOW)
    return verdict.decision != "refuse"


@pytest.mark.parametrize(
    ("proven", "asked"),
    [
        ("Which drugs does Bayer make?", "Which drugs are made by Bayer?"),
        ("Which drugs does Bayer make?", "drugs that are made by Bayer"),
        ("Which drugs did Bayer make in Hull?", "Which drugs were made by Bayer in Hull?"),
        ("Which customers did Ann Lee refer?", "customers Ann Lee referred"),
        ("Which customers did Ann Lee refer?", "Which customers has Ann Lee referred?"),
        ("Which visits were cancelled?", "Show me the cancelled visits"),
        ("How many visits were cancelled?", "How many cancelled visits were there?"),
        ("Which orders were returned?", "list returned orders"),
        ("Which patients have insurance?", "List the patients who have insurance"),
        ("Which patients have insurance?", "Which patients have got insurance?"),
        ("Which patients have no allergies?", "Which patients don't have any allergies?"),
        ("Which patients have no allergies?", "Which patients do not have allergies?"),
        ("Which patients have no allergies?", "Patients without allergies"),
        ("Which visits took more than 30 minutes?", "Which visits took longer than 30 minutes?"),
        ("Which visits took less than 30 minutes?", "Which visits took shorter than 30 mins?"),
        ("Which products cost less than 50?", "Which products are cheaper than 50?"),
        ("Prescriptions over 500 mg", "Prescriptions over 500 milligrams"),
        ("Orders with more than 10% discount", "Orders with more than 10 percent discount"),
        ("Which products are out of stock?", "Which products are currently out of stock?"),
        ("How many expenses were reimbursed?", "How many expenses were reimbursed so far?"),
        ("What is the most expensive product?", "Which product is the most expensive?"),
        ("What are the 3 most expensive products?", "Which three products are the most expensive?"),
        ("Who is the guardian of Olga Pell?", "Who is Olga Pell's guardian?"),
        ("Which customers are active?", "List the active customers"),
        ("How many customers are active?", "How many active customers are there?"),
        ("flights that are nonstop from Hull", "nonstop flights from Hull"),
        ("How many different drugs were prescribed?", "How many distinct drugs were prescribed?"),
    ],
)
def test_another_phrasing_of_a_question_asks_the_same(proven: str, asked: str) -> None:
    assert asks_the_same(proven, asked)
    assert asks_the_same(asked, proven)


@pytest.mark.parametrize(
    ("proven", "asked"),
    [
        ("Which customers did Ann Lee refer?", "Which customers referred Ann Lee?"),
        ("Which customers were referred by Ann Lee?", "Which customers referred Ann Lee?"),
        ("Who does Bob Ray manage?", "Who manages Bob Ray?"),
        ("Which patients have allergies?", "Which patients have no allergies?"),
        ("Which patients have no allergies?", "Which patients do not have all allergies?"),
        ("Which visits took longer than 30 minutes?", "Which visits took longer than 30 seconds?"),
        ("Which towers are taller than 30 m?", "Which towers are taller than 30 km?"),
        ("Which rivers are longer than 30?", "Which rivers are more than 30?"),
        ("Which products are cheaper than 50?", "Which products are dearer than 50?"),
        ("Which state is the largest in population?", "Which state is the largest?"),
        ("How many orders were placed this month?", "How many orders were placed this month so far?"),
        ("Which product is the most expensive?", "Which product is the least expensive?"),
        ("Which customers ordered laptops?", "Which customers' laptops were ordered?"),
        ("Who is the guardian of Olga Pell?", "Who is Olga Pell the guardian of?"),
        ("Which products were out of stock?", "Which products are currently out of stock?"),
        ("Did Bayer make drugs?", "Drugs made by Bayer"),
        ("Which employees are managers?", "Which managers are employees?"),
        ("Which customers are inactive?", "Which customers are active?"),
    ],
)
def test_what_only_looks_like_it_is_refused(proven: str, asked: str) -> None:
    assert not asks_the_same(proven, asked)
    assert not asks_the_same(asked, proven)
