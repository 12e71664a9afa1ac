"""Elements of a chart, and the frame around them. Every text is escaped; colours are classes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from unicodedata import east_asian_width

WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 16, 36
"""Room around the drawing, for the axes and their numbers."""

_STANDALONE_STYLE = """
.hd-chart{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;background:#fff}
.hd-chart text{font-size:13px;fill:#52606d;font-variant-numeric:tabular-nums}
.hd-chart .hd-value{fill:#1f2933}
.hd-grid{stroke:#e4e7eb;stroke-width:1}.hd-axis{stroke:#9aa5b1;stroke-width:1}
.hd-line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.hd-s0{stroke:#0f766e}.hd-s1{stroke:#52606d;stroke-dasharray:6 4}.hd-s2{stroke:#7b8794;stroke-dasharray:2 4}
.hd-s3{stroke:#334e68;stroke-dasharray:10 3 2 3}
.hd-band{fill:#0f766e;fill-opacity:.14}.hd-band.hd-b1,.hd-band.hd-b2,.hd-band.hd-b3{fill:#7b8794}
.hd-dot{fill:#fff;stroke-width:2;stroke-dasharray:none}.hd-bar{fill:#0f766e}.hd-bar.hd-quiet{fill:#9aa5b1}
.hd-mark{stroke:#9aa5b1;stroke-dasharray:3 3}.hd-up{fill:#0f766e}.hd-down{fill:#b42318}.hd-neutral{fill:#7b8794}
"""


def text(x: float, y: float, content: str, *, anchor: str = "start", kind: str = "") -> str:
    """Words at a place."""
    class_attribute = f' class="{kind}"' if kind else ""
    return f'<text x="{n(x)}" y="{n(y)}" text-anchor="{anchor}"{class_attribute}>{escape(content)}</text>'


def truncate(content: str, room: float, size: float) -> str:
    """Words in one line, cut where they would need more room in letters of this size."""
    words, used = " ".join(content[:1000].split()), 0.0
    for index, letter in enumerate(words):
        used += _letter_width(letter) * size
        # What is cut leaves room for the dots.
        if used > room - (size if index < len(words) - 1 else 0):
            return words[:index] + "…"
    return words


def _letter_width(letter: str) -> float:
    """About how wide a letter is, measured by its height."""
    if east_asian_width(letter) in "WF":
        return 1.0
    if letter in "mwMW@%":
        return 0.9
    return 0.68 if letter.isupper() else 0.56


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line x1="{n(x1)}" y1="{n(y1)}" x2="{n(x2)}" y2="{n(y2)}" class="{kind}"/>'


def with_tooltip(drawn: str, tooltip: str) -> str:
    """A shape that says something when it is pointed at."""
    return f'<g class="hd-tip" data-tip="{escape(tooltip)}">{drawn}<title>{escape(tooltip)}</title></g>'


def legend(names: Sequence[str], y: float) -> str:
    """Which line is which, by its dashes as well as by its colour."""
    parts, x = [], float(LEFT)
    # On narrow screens letters are larger: they get all the room there is.
    room = (WIDTH - LEFT - RIGHT - 60 * len(names)) / max(1, sum(map(len, names)))
    letter = min(12.5, max(8.0, room))
    for index, name in enumerate(names):
        parts.append(line(x, y - 4, x + 26, y - 4, f"hd-line hd-s{index % 4}"))
        parts.append(text(x + 32, y, name, kind="hd-value"))
        x += 32 + letter * len(name) + 28
    return "".join(parts)


def frame(parts: Sequence[str], height: float, title: str, desc: str, *, standalone: bool, width: float = WIDTH) -> str:
    """The whole picture; alone, it brings its own colours."""
    xmlns = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    style = f"<style>{_STANDALONE_STYLE}</style>" if standalone else ""
    ground = f'<rect width="{n(width)}" height="{n(height)}" fill="#fff"/>' if standalone else ""
    desc_tag = f"<desc>{escape(desc)}</desc>" if desc else ""
    return (
        f'<svg{xmlns} class="hd-chart" role="img" viewBox="0 0 {n(width)} {n(height)}" width="100%"'
        f' aria-label="{escape(title)}"><title>{escape(title)}</title>{desc_tag}{style}{ground}{"".join(parts)}</svg>'
    )


def n(value: float) -> str:
    """A coordinate, as short as it can be."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
