"""Tables that fit the terminal: what there is no room for is left out, and ids go below the text they belong to."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

GAP = 2
"""The space between two columns."""

MIN_TEXT = 24
"""The least that a column of text is given before something else is left out."""

MIN_MAIN_TEXT = 44
"""The same for the longest one, which is what people read."""


class FittingTable:
    """A table without frames.

    Where there is no room, the columns `less` are left out, the first ones first. If that is not enough, ids move
    below the longest text of their row.
    """

    def __init__(self, columns: Sequence[str], numbers: Sequence[str], less: Sequence[str]) -> None:
        self._columns = list(columns)
        self._numbers = frozenset(numbers)
        self._less = list(less)
        self._rows: list[tuple[list[str], str | None]] = []

    def add_row(self, *cells: str, style: str | None = None) -> None:
        """Adds a row; cells that are missing at its end are empty."""
        self._rows.append(([*cells, *[""] * (len(self._columns) - len(cells))], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [self._width(console, place) for place in range(len(self._columns))]
        shown = list(range(len(self._columns)))
        for name in self._less:
            if self._needed(shown, widths) > options.max_width:
                shown.remove(self._columns.index(name))
        ids = [place for place in shown if _is_id(self._columns[place])]
        others = [place for place in shown if place not in ids and self._columns[place] not in self._numbers]
        if self._needed(shown, widths) <= options.max_width or not others:
            yield self._table(shown, [], 0, widths)
        else:
            yield self._table(
                [place for place in shown if place not in ids], ids, max(others, key=widths.__getitem__), widths
            )

    def _table(self, shown: Sequence[int], below: Sequence[int], text: int, widths: Sequence[int]) -> Table:
        """What is shown as columns; the ids `below` are in the column of the `text`."""
        made = Table(box=None, pad_edge=False, header_style="bold")
        for place in shown:
            name = self._columns[place]
            least = max((widths[each] for each in below), default=0) if place == text else 0
            made.add_column(
                name,
                justify="right" if name in self._numbers else "left",
                overflow="fold",
                no_wrap=_is_id(name),
                min_width=least or None,
            )
        for cells, style in self._rows:
            ids = [f"[dim]{cells[place]}[/dim]" for place in below if cells[place]]
            made.add_row(
                *("\n".join([cells[each], *ids]) if each == text and below else cells[each] for each in shown),
                style=style,
            )
        return made

    def _needed(self, shown: Sequence[int], widths: Sequence[int]) -> int:
        """The least width at which these columns can be read."""
        texts = sorted(widths[each] for each in shown if not _is_id(self._columns[each]))
        ids = sum(widths[each] for each in shown if _is_id(self._columns[each]))
        least = sum(min(each, MIN_TEXT) for each in texts[:-1]) + sum(min(each, MIN_MAIN_TEXT) for each in texts[-1:])
        return ids + least + GAP * (len(shown) - 1)

    def _width(self, console: Console, place: int) -> int:
        cells = [self._columns[place], *(cells[place] for cells, _ in self._rows)]
        return max(cell_len(line) for cell in cells for line in console.render_str(cell).plain.split("\n"))


def _is_id(column: str) -> bool:
    """Whether a column has what is copied or compared, which is not broken over lines."""
    return column == "id" or column.endswith("_id") or column.startswith("checksum")
