"""The meaning of the gates of the cache in a few words: commands, reports and pages show these instead of codes."""

LABELS = {
    "same": "it asks for the same",
    "rebind": "it asks for the same of other values",
    "candidates": "no stored question is like it",
    "literals": "values differ, and can't be exchanged",
    "operators": "they compare differently",
    "negation": "only one of them negates",
    "form": "only one of them asks for yes or no",
    "aggregate": "they ask for different figures",
    "scope": "their scope differs",
    "argument_order": "the same words appear in another order",
    "relative_dates": "they mean different days",
    "words": "words differ that may matter",
    "kind": "a value is ambiguous",
    "conflict": "proven answers contradict each other",
    "sql": "the SQL can't be read with all its values",
    "asker": "it is in the first person, and somebody else asked",
    "feedback": "somebody said that it is wrong",
    "schema": "the schema has changed since",
    "data": "the data may have changed since",
    "determinism": "its result differs from run to run",
    "truncation": "its stored result is not complete",
    "run": "it could not be run now",
}


def label(gate: str) -> str:
    return LABELS.get(gate, gate.replace("_", " "))
