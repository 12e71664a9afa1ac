"""Draws docs/images/ranking.svg from a real run of the loop in `heedful demo`.

Run it with matplotlib installed (`pip install -e '.[bench]'`): `python -m docs.make_picture`.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import heedful
from heedful.interfaces.cli.demo_commands import FACTS, HELPFUL, RELATED_QUESTION, give_feedback
from heedful.model import Hit

FILE = Path(__file__).parent / "images" / "ranking.svg"
SHOWN = 5
LEFT, RIGHT = 0.0, 1.0
INK, QUIET, PROUD = "#24292f", "#8c959f", "#1a7f37"


def ranked() -> tuple[list[Hit], list[Hit]]:
    """The ranking before anybody said anything, and after three people did."""
    with heedful.open(":memory:") as memory:
        facts = memory.remember(list(FACTS))
        helpful = facts.fact_ids[FACTS.index(HELPFUL)]
        before = memory.recall(RELATED_QUESTION, top_k=SHOWN)
        give_feedback(memory, helpful)
        after = memory.recall(RELATED_QUESTION, top_k=SHOWN)
    return before.hits, after.hits


def draw(before: list[Hit], after: list[Hit]) -> None:
    """A slopegraph: one line a fact, from its rank before to its rank after."""
    plt.rcParams.update({"font.family": "DejaVu Sans", "svg.hashsalt": "heedful"})
    figure, axes = plt.subplots(figsize=(9.6, 4.3))
    figure.subplots_adjust(left=0.01, right=0.99, top=0.99, bottom=0.01)
    axes.set(xlim=(-1.85, 1.45), ylim=(SHOWN + 0.55, -0.85))
    axes.axis("off")
    axes.text(-1.8, -0.55, f"“{RELATED_QUESTION}”", fontsize=13, weight="bold", color=INK, va="center")
    axes.text(LEFT, 0.12, "before\n(rank and score)", fontsize=11, color=INK, ha="center", va="center")
    axes.text(
        RIGHT,
        0.12,
        "after three people, in other words,\nsaid what helped and what did not",
        fontsize=11,
        color=INK,
        ha="center",
        va="center",
    )
    then = {hit.fact_id: hit for hit in before}
    for hit in after:
        if hit.fact_id in then:
            _slope(axes, then[hit.fact_id], hit)
    figure.savefig(FILE, facecolor="white", metadata={"Date": None})
    print(f"wrote {FILE.name}: {[(then[hit.fact_id].rank, hit.rank) for hit in after if hit.fact_id in then]}")


def _slope(axes: Axes, before: Hit, after: Hit) -> None:
    proven = before.text == HELPFUL
    color, width, weight = (PROUD, 3.2, "bold") if proven else (QUIET, 1.4, "normal")
    ink = PROUD if proven else INK
    axes.plot(
        [LEFT, RIGHT], [before.rank, after.rank], color=color, lw=width, marker="o", ms=7 if proven else 5, zorder=3
    )
    words = before.text.split()
    half = next(place for place in range(len(words)) if len(" ".join(words[:place])) >= len(before.text) / 2)
    text = f"{' '.join(words[:half])}\n{' '.join(words[half:])}"
    axes.text(
        -0.42, before.rank, text, fontsize=10, color=ink, weight=weight, ha="right", va="center", linespacing=1.25
    )
    axes.text(
        -0.07,
        before.rank,
        f"{before.rank}.  {before.score:.3f}",
        fontsize=11,
        color=ink,
        weight=weight,
        ha="right",
        va="center",
    )
    axes.text(1.07, after.rank, f"{after.rank}.  {after.score:.3f}", fontsize=11, color=ink, weight=weight, va="center")


if __name__ == "__main__":
    draw(*ranked())
