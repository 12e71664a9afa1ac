"""The picture of the cache benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.plots import FAINT, INK, LIMIT, OURS, PEERS, PLAIN, _dress, _pyplot, _saved


def trade_off(
    curve: Sequence[Mapping[str, float]],
    arms: Mapping[str, Mapping[str, float]],
    wrong: float,
    reused: float,
    file: Path,
) -> Path:
    """Wrong answers against reuse: the curve of all similarity thresholds, and the gates."""
    figure, axes = _pyplot().subplots(figsize=(8, 4.8), layout="constrained")
    axes.plot([one["reused"] for one in curve], [one["wrong"] for one in curve], color=PEERS, label="cosine threshold")
    for name, one in arms.items():
        colour = PEERS if name.startswith("cosine") else OURS if name == "gates" else PLAIN
        axes.plot([one["reused"]], [one["wrong"]], "o", color=colour, markersize=7 if colour == OURS else 4)
        if colour != PLAIN:
            spot = (one["reused"], one["wrong"])
            axes.annotate(name, spot, (6, 6), textcoords="offset points", fontsize=8, color=INK)
    axes.axhline(wrong, color=LIMIT, linestyle="--", linewidth=1)
    axes.axvline(reused, color=FAINT, linestyle="--", linewidth=1)
    axes.set(xlim=(0, 100), ylim=(-1, None), xlabel="questions answered by reuse, %", ylabel="wrong answers, % of all")
    _dress(axes, "A proven query used again (grey: gates with less to go by; dashed: the bars)", grid="both")
    return _saved(figure, file)
