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
    below the longest text of their row. Without rows, it says that there are none.
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
        if not self._rows:
            yield "none"
            return
        widths = [self._width(console, index) for index in range(len(self._columns))]
        visible = list(range(len(self._columns)))
        for name in self._less:
            if self._needed(visible, widths) > options.max_width:
                visible.remove(self._columns.index(name))
        ids = [index for index in visible if _is_id(self._columns[index])]
        texts = [index for index in visible if index not in ids and self._columns[index] not in self._numbers]
        if self._needed(visible, widths) <= options.max_width or not texts:
            yield self._table(visible, [], 0, widths)
        else:
            yield self._table(
                [index for index in visible if index not in ids], ids, max(texts, key=widths.__getitem__), widths
            )

    def _table(self, visible: Sequence[int], below: Sequence[int], text: int, widths: Sequence[int]) -> Table:
        """What is shown as columns; the ids `below` are in the column of the `text`."""
        result = Table(box=None, pad_edge=False, header_style="bold")
        for index in visible:
            name = self._columns[index]
            min_width = max((widths[each] for each in below), default=0) if index == text else 0
            result.add_column(
                name,
                justify="right" if name in self._numbers else "left",
                overflow="fold",
                no_wrap=_is_id(name),
                min_width=min_width or None,
            )
        for cells, style in self._rows:
            ids = [f"[dim]{cells[index]}[/dim]" for index in below if cells[index]]
            result.add_row(
                *("\n".join([cells[each], *ids]) if each == text and below else cells[each] for each in visible),
                style=style,
            )
        return result

    def _needed(self, visible: Sequence[int], widths: Sequence[int]) -> int:
        """The least width at which these columns can be read."""
        texts = sorted(widths[each] for each in visible if not _is_id(self._columns[each]))
        ids = sum(widths[each] for each in visible if _is_id(self._columns[each]))
        min_width = sum(min(each, MIN_TEXT) for each in texts[:-1]) + sum(
            min(each, MIN_MAIN_TEXT) for each in texts[-1:]
        )
        return ids + min_width + GAP * (len(visible) - 1)

    def _width(self, console: Console, index: int) -> int:
        cells = [self._columns[index], *(cells[index] for cells, _ in self._rows)]
        return max(cell_len(line) for cell in cells for line in console.render_str(cell).plain.split("\n"))


def _is_id(column: str) -> bool:
    """Whether a column has what is copied or compared, which is not broken over lines."""
    return column == "id" or column.endswith("_id") or column.startswith("checksum")
