"""What lookups take in rating by rating equals what they read at once, in every process."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cities import IN_ITALY, IN_ITALY_SQL, make_cities
from sqlite_steps import sqlite_steps

from heedful import Heedful
from heedful.sql.reuse.candidates import Questions

COUNT = "SELECT count(*) AS cities FROM city WHERE country = '{}'"
PEOPLE = "SELECT people FROM city WHERE name = '{}'"
RUNS = (
    *((f"How many cities are in {place}?", COUNT.format(place)) for place in ("Italy", "France", "Norway")),
    *((f"How many towns are in {place}?", COUNT.format(place)) for place in ("Italy", "France")),
    *((f"How many people live in {place}?", PEOPLE.format(place)) for place in ("Rome", "Oslo", "Paris")),
    ("How many people does Milan have?", PEOPLE.format("Milan")),
    ("How many cities are in Italy?", "SELECT count(id) AS cities FROM city WHERE country = 'Italy' AND people > 0"),
)
ASKED = (
    *("How many cities are in Norway?", "how many towns are in Norway", "How many people live in Nice?"),
    *("How many people does Oslo have?", "number of cities in France", "How many cities are not in Italy?"),
)
AUTHORS = (None, "ann", "bo", "cy", "visitor-1")
STEPS = 30


def told(store: Heedful) -> list[Any]:
    """What is decided about each question, and what is known."""
    found = []
    for question in ASKED:
        lookup = store.chat.execution_cache_lookup(question, top_n=20)
        kept = [match.model_dump(exclude={"execution"}) for match in lookup.matches]
        found.append((kept, lookup.candidates_checked, lookup.suggestion))
    covered = store.chat.execution_cache_coverage()
    return [*found, covered.proven, covered.proven_questions]


class Life:
    """People who run, rate, change their minds and delete, at random."""

    def __init__(self, store: Heedful, seed: int) -> None:
        self.store = store
        self.chosen = random.Random(seed)
        self.runs = [store.executions.execute_query(sql, question=question).execution_id for question, sql in RUNS]
        self.opinions: list[str] = []
        self.examples: list[str] = []
        store.golden_examples.create(IN_ITALY, IN_ITALY_SQL)
        session = store.chat_sessions.create().id
        self.message = store.chat.chat_to_sql(session, IN_ITALY).chat_message_id

    def step(self) -> None:
        steps = (self.rate, self.rate, self.rate, self.rate, self.rate_hit, self.undo, self.change)
        rare = (self.complain, self.run_message, self.add_example, self.remove_example, self.remove_run, self.erase)
        self.chosen.choice((*steps, *steps, *rare))()

    def rate(self) -> None:
        author, is_positive = self.chosen.choice(AUTHORS), self.chosen.random() < 0.7
        run = self.chosen.choice(self.runs)
        said = self.store.feedback.create(
            is_positive=is_positive, execution_id=run, author=author, feedback=self.chosen.choice(("so", "no", None))
        )
        self.opinions.append(said.id)

    def rate_hit(self) -> None:
        lookup = self.store.chat.execution_cache_lookup(self.chosen.choice(ASKED))
        if lookup.cache_hit:
            made = lookup.matches[0].execution["execution_id"]
            author = self.chosen.choice(AUTHORS)
            is_positive = self.chosen.random() < 0.8
            self.opinions.append(
                self.store.feedback.create(is_positive=is_positive, execution_id=made, author=author).id
            )

    def undo(self) -> None:
        if self.opinions:
            undone = self.opinions.pop(self.chosen.randrange(len(self.opinions)))
            self.store.feedback.bulk_delete([undone])

    def change(self) -> None:
        listed = self.store.feedback.list().items
        if listed:
            opinion = self.chosen.choice(listed)
            self.store.feedback.update(opinion.id, is_positive=self.chosen.random() < 0.5)

    def complain(self) -> None:
        author = self.chosen.choice(AUTHORS)
        said = self.store.feedback.create(is_positive=False, chat_message_id=self.message, author=author)
        self.opinions.append(said.id)

    def run_message(self) -> None:
        self.runs.append(self.store.executions.execute_from_chat(self.message).execution_id)

    def add_example(self) -> None:
        question = f"How many inhabitants has {self.chosen.choice(('Rome', 'Nice', 'Oslo'))}, by {len(self.examples)}?"
        self.examples.append(self.store.golden_examples.create(question, PEOPLE.format("Rome")).id)

    def remove_example(self) -> None:
        if self.examples:
            self.store.golden_examples.delete(self.examples.pop())

    def remove_run(self) -> None:
        if len(self.runs) > 4:
            self.store.executions.delete(self.runs.pop(self.chosen.randrange(len(self.runs))))

    def erase(self) -> None:
        self.store.forget(author=self.chosen.choice(("ann", "bo")))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.nightly
def test_what_is_taken_in_by_and_by_equals_what_is_read_at_once(
    open_store: Callable[..., Heedful], tmp_path: Path, seed: int
) -> None:
    store, at_once = open_store(), open_store()
    store.connectors.create("geo", make_cities(tmp_path).url)
    life = Life(store, seed)
    for number in range(STEPS):
        life.step()
        if number % 3 == 0:
            store.chat.execution_cache_lookup(ASKED[0])
        if number % 6 == 5:
            at_once._workspace.part(Questions)._indexes.clear()
            at_once._project.executions.proofs.forget(at_once.connectors.list()[0].connector_id)
            assert told(store) == told(at_once)


@pytest.mark.slow
def test_a_rating_has_only_what_changed_read(store: Heedful, path: Path) -> None:
    store.connectors.create("geo", make_cities(path.parent).url)

    def prove(count: int) -> None:
        for _ in range(count):
            done = store.executions.execute_query(IN_ITALY_SQL, question=IN_ITALY).execution_id
            store.feedback.create_positive(execution_id=done)
        store.chat.execution_cache_lookup(IN_ITALY)

    def steps_after_a_rating() -> int:
        done = store.executions.execute_query(PEOPLE.format("Rome"), question="How many people live in Rome?")
        store.feedback.create_positive(execution_id=done.execution_id)
        with sqlite_steps(store) as steps:
            store.chat.execution_cache_lookup(ASKED[0])
        return steps()

    prove(20)
    few = steps_after_a_rating()
    prove(40)
    # Each of the other executions adds about ten instructions: its place in an index.
    assert steps_after_a_rating() < few + 50
