"""The pictures of the learning benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.learning_stats import Change
from bench.plots import FAINT, INK, LIMIT, OURS, PEERS, _dress, _pyplot, _saved

Table = Mapping[str, Mapping[str, tuple[Change, Change]]]
"""By arm and condition: held-out phrasings of what was rated, and needs that nobody rated."""


def trade_off(worlds: Mapping[str, Table], conditions: Sequence[str], title: str, file: Path) -> Path:
    """Gain where people rated against harm where nobody did: a row for each world, a column for each condition."""
    size = (4.4 * len(conditions), 3.6 * len(worlds))
    figure, axes = _pyplot().subplots(len(worlds), len(conditions), figsize=size, layout="constrained", squeeze=False)
    figure.suptitle(title, fontsize=12, color=INK)
    for row, (world, table) in zip(axes, worlds.items(), strict=True):
        for place, (own, condition) in enumerate(zip(row, conditions, strict=True)):
            for arm, cells in table.items():
                _point(own, arm, *cells[condition])
            own.axvline(-1, color=LIMIT, linestyle="--", linewidth=1)
            own.axhline(0, color=FAINT, linewidth=1)
            own.set_xscale("symlog", linthresh=1, linscale=0.6)
            ticks = [-50, -20, -5, -1, 0, 1]
            own.set_xticks(ticks, [f"{tick:+d}" for tick in ticks])
            own.minorticks_off()
            own.set_xlabel("needs nobody rated, change of MRR, %", fontsize=8)
            if not place:
                own.set_ylabel(f"{world.split('.')[0]}: other phrasings, %", fontsize=8)
            _dress(own, condition, grid="both")
    figure.supxlabel("dashed: −1%; lines: 95% intervals", fontsize=8)
    return _saved(figure, file)


def _point(axes: Any, arm: str, held_out: Change, unrated: Change) -> None:
    axes.errorbar(
        [unrated.change],
        [held_out.change],
        xerr=[[unrated.change - unrated.low], [unrated.high - unrated.change]],
        yerr=[[held_out.change - held_out.low], [held_out.high - held_out.change]],
        fmt="o",
        color=OURS if arm == "adaptive" else PEERS,
        markersize=7,
        linewidth=0.8,
        zorder=3 if arm == "adaptive" else 2,
    )
    axes.annotate(
        arm.replace("documented, ", ""),
        (unrated.change, held_out.change),
        (5, 4),
        textcoords="offset points",
        fontsize=8,
        color=INK,
    )
