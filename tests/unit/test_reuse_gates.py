"""Every refusal names its gate, and every gate is explained where people look."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from heedful.interfaces.reason_labels import LABELS
from heedful.sql.reuse.reasons import Gate

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "how-reuse-decides.md"
OF_THE_STORE = {"candidates", "feedback", "schema", "data", "determinism", "truncation", "run"}


def test_every_gate_is_explained_on_the_dashboard() -> None:
    assert LABELS.keys() == {*get_args(Gate)} | OF_THE_STORE


def test_every_gate_that_refuses_is_in_the_guide() -> None:
    table = GUIDE.read_text(encoding="utf-8").partition("## The gates")[2].partition("\n## ")[0]
    refusing = {*get_args(Gate)} - {"same", "rebind"} | OF_THE_STORE - {"candidates"}
    assert {gate for gate in refusing if f"`{gate}`" not in table} == set()
