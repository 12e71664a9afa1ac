"""The pictures of the reports."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Axes: TypeAlias = Any
"""matplotlib is an extra: it is imported when a picture is drawn, and not known to the type checker."""

OURS, PEERS, PLAIN, LIMIT = "#1b6ca8", "#e08e45", "#9aa5b1", "#c0392b"
INK, FAINT = "#22303c", "#d8dee4"


@dataclass(frozen=True, slots=True)
class Strip:
    """One horizontal strip: a value, and perhaps a greater one that a thin line reaches to."""

    name: str
    value: float
    colour: str
    reach: float | None = None
    label: str = ""


def strips(axes: Axes, title: str, lines: Sequence[Strip], unit: str, *, logarithmic: bool = False) -> None:
    """Horizontal strips, the first at the top, each with its figure behind it."""
    ticker: Any = importlib.import_module("matplotlib.ticker")
    places = range(len(lines))
    axes.barh(places, [line.value for line in lines], color=[line.colour for line in lines], height=0.62)
    far = max(max(line.value, line.reach or 0) for line in lines)
    for place, line in enumerate(lines):
        if line.reach is not None:
            axes.plot([line.value, line.reach], [place, place], color=INK, linewidth=1)
            axes.plot([line.reach], [place], marker="|", color=INK, markersize=6)
        label = line.label or f"{line.value:,.1f}"
        end = (max(line.value, line.reach or 0), place)
        axes.annotate(label, end, (6, 0), textcoords="offset points", va="center", fontsize=8, color=INK)
    axes.set_yticks(places, [line.name for line in lines], fontsize=8)
    axes.invert_yaxis()
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(min(line.value for line in lines) * 0.5, far * 8)
    else:
        axes.set_xlim(0, far * 1.2)
    axes.xaxis.set_major_formatter(
        ticker.FuncFormatter(lambda value, _: f"{value:,g}" if value < 1 else f"{value:,.0f}")
    )
    axes.set_xlabel(unit, fontsize=8)
    _dress(axes, title)


def growth(axes: Axes, title: str, sizes: Sequence[Mapping[str, Any]]) -> None:
    """Time against the number of facts, both on logarithmic scales."""
    facts = [size["facts"] for size in sizes]
    for name, style in (("p50", "-"), ("p95", "--")):
        axes.plot(
            facts, [size["time"][name] for size in sizes], style, color=OURS, marker="o", markersize=4, label=name
        )
    for size in sizes:
        label = f"{size['time']['p50']:.1f} ms"
        axes.annotate(
            label, (size["facts"], size["time"]["p50"]), (7, -12), textcoords="offset points", ha="left", fontsize=8
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(
        facts, [_short(count) + (" *" if size["made"] else "") for count, size in zip(facts, sizes, strict=True)]
    )
    ticker: Any = importlib.import_module("matplotlib.ticker")
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(
        ticker.FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    )
    axes.tick_params(which="both", labelsize=8)
    axes.set_xlim(min(facts) * 0.6, max(facts) * 3.5)
    low = min(size["time"]["p50"] for size in sizes)
    axes.set_ylim(low * 0.6, max(size["time"]["p95"] for size in sizes) * 1.4)
    axes.set_xlabel("facts (* made from real ones)", fontsize=8)
    axes.set_ylabel("milliseconds", fontsize=8)
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    _dress(axes, title, grid="both")


def quality(figures: Mapping[str, Mapping[str, float]], limit: float, file: Path) -> Path:
    """Grouped columns: one group a category, one column a way to rank."""
    figure, axes = _pyplot().subplots(figsize=(10, 4.6), layout="constrained")
    groups = list(next(iter(figures.values())))
    colours = ["#c9d1d9", "#a9b4be", "#8a97a3", "#cfe3f2", "#a7cbe6", "#5b9fd0", OURS]
    width = 0.84 / len(figures)
    for place, (name, shares) in enumerate(_baselines_first(figures)):
        spots = [group + (place - (len(figures) - 1) / 2) * width for group in range(len(groups))]
        columns = axes.bar(spots, [shares[group] for group in groups], width * 0.94, color=colours[place], label=name)
        labels = axes.bar_label(columns, fmt=lambda value: f"{value:.2f}".lstrip("0"), fontsize=7, padding=2, color=INK)
        for label in labels:
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.4})
    axes.plot([-0.45, 0.45], [limit, limit], color=LIMIT, linewidth=1.2, linestyle="--", zorder=1)
    axes.text(-0.46, limit, f"bar {limit:.2f} ".replace("0.", "."), color=LIMIT, fontsize=8, ha="right", va="center")
    axes.set_xticks(range(len(groups)), groups, fontsize=9)
    axes.set_xlim(-0.75, len(groups) - 0.5)
    axes.set_ylim(0, 1)
    axes.tick_params(axis="y", labelsize=8)
    axes.legend(fontsize=8, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    _dress(axes, "LoCoMo: share of evidence turns among the first ten facts", grid="y")
    return _saved(figure, file)


def speed(figures: Mapping[str, Any], title: str, file: Path) -> Path:
    """Four pictures in one: recall beside embedding, vector search beside peers, writes, and growth."""
    figure, ((top_left, top_right), (low_left, low_right)) = _pyplot().subplots(
        2, 2, figsize=(13, 8.4), layout="constrained"
    )
    figure.suptitle(title, fontsize=12, color=INK)
    recalls = figures["recall"]
    shown = [Strip("embedding alone", *_times(figures["embedding"], PLAIN))]
    shown += [Strip(name, *_times(both["whole"], OURS)) for name, both in recalls.items()]
    strips(top_left, "One recall, everything included (p50, line to p95)", shown, "milliseconds")
    beside = [Strip("heedful: hybrid, after embedding", *_times(recalls["hybrid"]["after"], OURS))]
    beside += [Strip("heedful: semantic, after embedding", *_times(recalls["semantic"]["after"], OURS))]
    beside += [Strip(name, *_times(peer, PEERS)) for name, peer in figures["peers"].items()]
    beside += [Strip("numpy, exact", *_times(figures["exact"], PLAIN))]
    found = figures["recall_at_10"]
    for place, strip in enumerate(beside):
        name = "heedful" if strip.name.startswith("heedful: semantic") else strip.name
        share = f", finds {found[name]:.3f}" if name in found else ""
        beside[place] = Strip(strip.name, strip.value, strip.colour, strip.reach, f"{strip.value:.1f}{share}")
    strips(
        top_right, "Beside vector searches with the same vectors", beside, "milliseconds, logarithmic", logarithmic=True
    )
    writes = figures["writes"]
    written = [
        Strip("SQLite alone", writes["raw"], PLAIN, label=f"{writes['raw']:,.0f}"),
        Strip("SQLite alone, Heedful's tables", writes["indexed"], PLAIN, label=f"{writes['indexed']:,.0f}"),
        Strip("signals, known queries", writes["known"], OURS, label=f"{writes['known']:,.0f}"),
        Strip("signals, new queries", writes["new"], OURS, label=f"{writes['new']:,.0f}"),
    ]
    strips(low_left, "Durable writes in batches of 100 signals (300 rows)", written, "rows a second")
    low_left.axvline(writes["raw"] / 10, color=LIMIT, linestyle="--", linewidth=1.2)
    spot, across = (writes["raw"] / 10, 0.005), low_left.get_xaxis_transform()
    low_left.annotate(" bar: 10% of SQLite alone", spot, xycoords=across, color=LIMIT, fontsize=8, va="bottom")
    growth(low_right, "Hybrid recall after embedding, by number of facts", figures["sizes"])
    return _saved(figure, file)


def scale(sizes: Sequence[Mapping[str, Any]], file: Path) -> Path:
    """Time of a recall, of a fact, of a signal and of opening against the number of facts, one line a store."""
    figure, panels = _pyplot().subplots(1, 4, figsize=(18, 4.4), layout="constrained")
    titles = {
        "recall": "Hybrid recall after embedding (p50)",
        "remember": "One durable fact after embedding (p50)",
        "signal": "One durable signal (p50)",
        "opened": "Opening, to the first recall",
    }
    times = [{**size, "opened": {"p50": size["opened"]}} for size in sizes]
    for axes, (what, title) in zip(panels, titles.items(), strict=True):
        for store, colour in (("sqlite", OURS), ("postgresql", PEERS)):
            points = [(size["facts"], size[what]["p50"]) for size in times if size["store"] == store]
            if not points:
                continue
            axes.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=4, label=store)
            for spot in points:
                shown = f"{spot[1]:,.0f}" if spot[1] >= 100 else f"{spot[1]:.3g}"
                axes.annotate(shown, spot, (0, 6), textcoords="offset points", ha="center", fontsize=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        low = min(size[what]["p50"] for size in times) * 0.5
        high = max(size[what]["p50"] for size in times) * 2
        axes.set_ylim(low, high)
        steps = (step * 10**power for power in range(6) for step in (1, 2, 5))
        ticks = [tick for tick in steps if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
        counts = sorted({size["facts"] for size in sizes})
        axes.set_xticks(counts, [_short(count) for count in counts])
        axes.set_xlabel("facts", fontsize=8)
        axes.set_ylabel("milliseconds", fontsize=8)
        axes.legend(fontsize=8, frameon=False, loc="upper left")
        _dress(axes, title, grid="both")
    return _saved(figure, file)


def _pyplot() -> Any:
    importlib.import_module("matplotlib").use("Agg")
    return importlib.import_module("matplotlib.pyplot")


def _times(time: Mapping[str, float], colour: str) -> tuple[float, str, float]:
    return time["p50"], colour, time["p95"]


def _baselines_first(figures: Mapping[str, Mapping[str, float]]) -> list[tuple[str, Mapping[str, float]]]:
    """In the order of their strength within baselines and within ours."""
    return sorted(figures.items(), key=lambda item: (not item[0].startswith("baseline"), item[1]["all"]))


def _short(count: int) -> str:
    return f"{count // 1_000_000}M" if count >= 1_000_000 else f"{count // 1000}k"


def _dress(axes: Axes, title: str, grid: str = "x") -> None:
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=FAINT, linewidth=0.7)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, labelsize=8)


def _saved(figure: Any, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    _pyplot().close(figure)
    return file
