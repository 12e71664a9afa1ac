"""The pictures of the learning benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.learning_stats import Change
from bench.plots import FAINT, INK, LIMIT, OURS, PEERS, PLAIN, _dress, _pyplot, _saved

Table = Mapping[str, Mapping[str, tuple[Change, Change]]]
"""By arm and condition: held-out phrasings of what was rated, and needs that nobody rated."""


def trade_off(table: Table, conditions: Sequence[str], parts: Sequence[str], title: str, file: Path) -> Path:
    """Gain where people rated against harm where nobody did, one picture a condition."""
    figure, axes = _pyplot().subplots(1, len(conditions), figsize=(4.4 * len(conditions), 5), layout="constrained")
    figure.suptitle(title, fontsize=12, color=INK)
    for place, (own, condition) in enumerate(zip(axes, conditions, strict=True)):
        numbers = {arm: number for number, arm in enumerate(parts, start=1)}
        for arm, cells in table.items():
            held_out, unrated = cells[condition]
            _point(own, arm, numbers.get(arm), held_out, unrated)
        own.axvline(-1, color=LIMIT, linestyle="--", linewidth=1)
        own.axhline(0, color=FAINT, linewidth=1)
        own.set_xscale("symlog", linthresh=1, linscale=0.6)
        ticks = [-50, -20, -5, -1, 0, 1, 5]
        own.set_xticks(ticks, [f"{tick:+d}" for tick in ticks])
        own.minorticks_off()
        own.set_xlabel("needs nobody rated, change of MRR, %", fontsize=8)
        if not place:
            own.set_ylabel("held-out phrasings, change of MRR, %", fontsize=8)
        _dress(own, condition, grid="both")
    legend = ", ".join(f"{number} {arm}" for number, arm in enumerate(parts, start=1))
    figure.supxlabel(f"adaptive without: {legend}; dashed: the bar of −1%; lines: 95% intervals", fontsize=8)
    return _saved(figure, file)


def _point(axes: Any, arm: str, number: int | None, held_out: Change, unrated: Change) -> None:
    colour = OURS if arm == "adaptive" else PLAIN if number is not None else PEERS
    main = number is None
    axes.errorbar(
        [unrated.change],
        [held_out.change],
        xerr=[[unrated.change - unrated.low], [unrated.high - unrated.change]] if main else None,
        yerr=[[held_out.change - held_out.low], [held_out.high - held_out.change]] if main else None,
        fmt="o",
        color=colour,
        markersize=7 if main else 4,
        linewidth=0.8,
        zorder=3 if arm == "adaptive" else 2,
    )
    label = arm if number is None else str(number)
    axes.annotate(
        label,
        (unrated.change, held_out.change),
        (5, 4),
        textcoords="offset points",
        fontsize=8 if main else 6,
        color=INK if main else PLAIN,
    )
