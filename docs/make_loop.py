"""Draws docs/images/loop.svg, which moves, from a real run of the loop: `python -m docs.make_loop`, or `make pictures`.

Where nothing may move, it shows the ranking after the rating.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import wrap

import heedful
from heedful.interfaces.cli.demo_commands import FACTS, HELPFUL, RATED_QUESTION, RELATED_QUESTION
from heedful.interfaces.dashboard.rendering import PATHS
from heedful.model import Hit

FILE = Path(__file__).parent / "images" / "loop.svg"
LARGEST = 30_000
"""Bytes of the picture."""

SHOWN = 5
WIDTH, HEIGHT = 860, 432
LEFT, TOP, ROW = 348, 92, 62
STEPS = 4
SECONDS = 16
MOVE = 4
"""Percent of the time for which something moves."""

STYLE = """
svg { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; --ground: #fff; --edge: #d8dee2;
  --ink: #1c2427; --quiet: #57656c; --row: #f4f7f7; --accent: #0f766e; --tint: #d9efec }
@media (prefers-color-scheme: dark) { svg { --ground: #12191c; --edge: #2e3b41; --ink: #e6edef; --quiet: #9aabb3;
  --row: #1b2428; --accent: #4fd1c1; --tint: #16393a } }
.ground { fill: var(--ground); stroke: var(--edge) } text { fill: var(--ink) }
.quiet, .score { fill: var(--quiet) } .small { font-size: 13px } .bold { font-weight: 650 }
.row { fill: var(--row) } .bar { fill: var(--edge) } .number { fill: var(--ground); font-weight: 650 }
.proven .row { fill: var(--tint) } .proven .bar, .proven text, .dot { fill: var(--accent) }
.proven text { font-weight: 600 } .before { opacity: 0 } .bar { transform-box: fill-box; transform-origin: 0 0 }
.thumb { fill: none; stroke: var(--accent); stroke-width: 2; stroke-linecap: round; stroke-linejoin: round }
"""


def ranked() -> tuple[list[Hit], list[Hit], int]:
    """The ranking for a question before a rating and after it, and the rank that the rated fact had where it was rated.

    The rating is about another wording of the question. At the end it is undone.
    """
    with heedful.open(":memory:") as memory:
        helpful = memory.remember(list(FACTS)).fact_ids[FACTS.index(HELPFUL)]
        before = memory.recall(RELATED_QUESTION, top_k=SHOWN).hits
        shown = memory.recall(RATED_QUESTION)
        rated = memory.signal_recall(shown.recall_id, helpful=[helpful], author="ana")
        after = memory.recall(RELATED_QUESTION, top_k=SHOWN).hits
        for event in rated.event_ids:
            memory.retract(event)
        restored = memory.recall(RELATED_QUESTION, top_k=SHOWN).hits
    assert [(hit.fact_id, hit.score) for hit in restored] == [(hit.fact_id, hit.score) for hit in before]
    assert {hit.fact_id for hit in before} == {hit.fact_id for hit in after}
    return before, after, next(hit.rank for hit in shown.hits if hit.fact_id == helpful)


def draw(before: Sequence[Hit], after: Sequence[Hit], rated_at: int) -> str:
    earlier = {hit.fact_id: hit for hit in before}
    proven = next(hit for hit in after if hit.text == HELPFUL)
    was = earlier[proven.fact_id]
    steps = (
        ("Ask", ["The fact that would help", f"is at rank {was.rank}."]),
        (
            "Rate",
            ["Ana asked in other words,", f"“{RATED_QUESTION}”", f"She rates the fact at rank {rated_at} as helpful."],
        ),
        ("Ask again", ["The first question, which nobody rated:", f"from rank {was.rank} to rank {proven.rank}."]),
        ("Undo", ["Ana takes her rating back:", "all ranks and scores are as before."]),
    )
    largest = max(hit.score for hit in (*before, *after))
    rules = [
        _keyframes("before", "opacity: 1", "opacity: 0"),
        _keyframes("after", "opacity: 0", "opacity: 1"),
        ".before { animation-name: before } .after { animation-name: after }",
        "@keyframes thumb { 0%, 25% { opacity: 0; scale: .2 } 28%, 75% { opacity: 1; scale: 1 } "
        "79%, 100% { opacity: 0; scale: .2 } }",
        ".thumb { animation-name: thumb; transform-box: fill-box; transform-origin: center }",
    ]
    body = [_step(number, title, lines) for number, (title, lines) in enumerate(steps)]
    for number in range(STEPS):
        start, end = 100 * number / STEPS, 100 * (number + 1) / STEPS
        rules.append(
            f"@keyframes step{number} {{ 0%, {max(start - 1, 0):g}% {{ opacity: {1 if number == 0 else 0.45} }} "
            f"{start + 1:g}%, {end - 1:g}% {{ opacity: 1 }} {min(end + 1, 100):g}%, 100% "
            f"{{ opacity: {1 if number == STEPS - 1 else 0.45} }} }} #step{number} {{ animation-name: step{number} }}"
        )
    body += [
        f'<text class="quiet" x="{LEFT}" y="{TOP + ROW * place + 31}">{place + 1}</text>' for place in range(SHOWN)
    ]
    for hit in after:
        then = earlier[hit.fact_id]
        name, moved = f"fact{hit.rank}", ROW * (then.rank - hit.rank)
        rules.append(_keyframes(name, f"transform: translateY({moved}px)", "transform: none"))
        rules.append(
            _keyframes(f"bar{hit.rank}", f"transform: scaleX({then.score / hit.score:.3f})", "transform: none")
        )
        rules.append(f"#{name} {{ animation-name: {name} }} #{name} .bar {{ animation-name: bar{hit.rank} }}")
        body.append(_fact(name, hit, then, largest))
    moving = ".step, .fact, .bar, .before, .after, .thumb"
    timing = f"{moving} {{ animation: {SECONDS}s ease-in-out infinite }}"
    style = f"{STYLE}@media (prefers-reduced-motion: no-preference) {{ {timing}\n" + "\n".join(rules) + "\n}"
    title = (
        f"A fact rises from rank {was.rank} to rank {proven.rank} after one rating, and falls back when it is undone"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{title}</title><style>{style}</style>",
            f'<rect class="ground" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="14"/>',
            f'<text class="small quiet" x="{LEFT + 24}" y="44">Facts recalled for</text>',
            f'<text class="bold" x="{LEFT + 24}" y="66">“{escape(RELATED_QUESTION)}”</text>',
            *body,
            "</svg>\n",
        ]
    )


def _keyframes(name: str, before: str, after: str) -> str:
    """Something that is so before the rating counts and when it is undone, and otherwise in between."""
    moved, back = 50 + MOVE, 75 + MOVE
    return f"@keyframes {name} {{ 0%, 50% {{ {before} }} {moved}%, 75% {{ {after} }} {back}%, 100% {{ {before} }} }}"


def _step(number: int, title: str, lines: Sequence[str]) -> str:
    top = 44 + 96 * number
    words = [
        f'<text class="small quiet" x="66" y="{top + 20 + 18 * place}">{escape(line)}</text>'
        for place, line in enumerate(part for line in lines for part in wrap(line, 40))
    ]
    return (
        f'<g class="step" id="step{number}"><circle class="dot" cx="40" cy="{top - 5}" r="13"/>'
        f'<text class="number" x="40" y="{top}" text-anchor="middle">{number + 1}</text>'
        f'<text class="bold" x="66" y="{top}">{title}</text>{"".join(words)}</g>'
    )


def _fact(name: str, hit: Hit, then: Hit, largest: float) -> str:
    top, right = TOP + ROW * (hit.rank - 1), WIDTH - 28
    proven = hit.text == HELPFUL
    lines = wrap(hit.text, 44 if proven else 50)
    words = "".join(
        f'<text x="{LEFT + 38}" y="{top + (31 if len(lines) == 1 else 22) + 18 * place}">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    thumb = (
        f'<g transform="translate({right - 88} {top + 14})"><path class="thumb" d="{PATHS["up"]}"/></g>'
        if proven
        else ""
    )
    room = right - LEFT - 24
    return (
        f'<g class="fact{" proven" if proven else ""}" id="{name}">'
        f'<rect class="row" x="{LEFT + 24}" y="{top}" width="{room}" height="54" rx="9"/>{words}{thumb}'
        f'<rect class="bar" x="{LEFT + 38}" y="{top + 47}" width="{(room - 28) * hit.score / largest:.0f}" height="3"/>'
        f'<text class="score after" x="{right - 14}" y="{top + 31}" text-anchor="end">{hit.score:.2f}</text>'
        f'<text class="score before" x="{right - 14}" y="{top + 31}" text-anchor="end">{then.score:.2f}</text></g>'
    )


if __name__ == "__main__":
    FILE.write_text(draw(*ranked()))
    size = FILE.stat().st_size
    print(f"wrote {FILE.name}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"{FILE.name} is larger than {LARGEST:,} bytes")
