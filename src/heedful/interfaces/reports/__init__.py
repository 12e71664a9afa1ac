"""Reports: what people said, as one file that anybody can open."""

from heedful.interfaces.reports.writing import ReportFiles, write_report

__all__ = ["ReportFiles", "write_report"]
