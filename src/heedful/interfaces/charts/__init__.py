"""Charts as SVG text: for pages, and as standalone files."""

from heedful.interfaces.charts.bars import Bar, Interval, bar_chart, histogram, interval_chart
from heedful.interfaces.charts.lines import Marker, Point, Series, line_chart, sparkline

__all__ = [
    "Bar",
    "Interval",
    "Marker",
    "Point",
    "Series",
    "bar_chart",
    "histogram",
    "interval_chart",
    "line_chart",
    "sparkline",
]
