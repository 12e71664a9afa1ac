"""The loop that closes by itself: a rating changes the next recall, and its retraction changes it back, without a call
of `improve`."""

from __future__ import annotations

from collections.abc import Callable

from patience import until

from heedful import Heedful, RemoteHeedful

AT_SIX = "The gym opens at six."
AT_SEVEN = "The gym opens at seven."
QUESTION = "When does the gym open?"
AUTHORS = ("ada", "bo", "cy")

Memory = Heedful | RemoteHeedful


def recalled(memory: Memory, dataset: str = "main_dataset") -> list[str]:
    """What is recalled now, the best first."""
    return [hit.text for hit in memory.recall(QUESTION, dataset=dataset).hits]


def ask(memory: Memory, session_id: str = "chat", dataset: str = "main_dataset") -> str:
    """Remembers two facts if they are new, asks, and returns the id of the answer, which is made from the first."""
    memory.remember([AT_SIX, AT_SEVEN], dataset=dataset)
    recall = memory.recall(QUESTION, dataset=dataset)
    assert [hit.text for hit in recall.hits] == [AT_SIX, AT_SEVEN]
    entry = memory.sessions.add_entry(session_id, QUESTION, AT_SIX, recall_id=recall.recall_id)
    return entry.qa_id


def check_closes(
    memory: Memory,
    rate: Callable[[str], object],
    retract: Callable[[str], object],
    dataset: str = "main_dataset",
) -> None:
    """Each author rates down what is recalled first, and takes it back: after both, recall follows by itself."""
    for author in AUTHORS:
        rate(author)
    until(lambda: recalled(memory, dataset) == [AT_SEVEN, AT_SIX])
    for author in AUTHORS:
        retract(author)
    until(lambda: recalled(memory, dataset) == [AT_SIX, AT_SEVEN])
