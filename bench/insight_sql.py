"""The sums of the reports, as somebody would write them by hand over the tables."""

from __future__ import annotations

_DAY = 86_400_000_000
_UP = "sum(CASE WHEN rating = 'up' THEN 1 ELSE 0 END)"
_DOWN = "sum(CASE WHEN rating = 'down' THEN 1 ELSE 0 END)"
_COUNTS = f"{_UP}, {_DOWN}, count(score), sum(score)"
_OURS = "FROM feedbacks f WHERE project_id = 1 AND active = 1 AND f.at >= {{since}}"
_SIGNALS = (
    "SELECT {group}, sum(CASE WHEN value = 'helpful' THEN 1 ELSE 0 END), "
    "sum(CASE WHEN value = 'not_helpful' THEN 1 ELSE 0 END) FROM events e WHERE project_id = 1 AND kind = 'signal' "
    "AND e.at >= {{since}} AND NOT EXISTS "
    "(SELECT 1 FROM events r WHERE r.target_id = e.id AND r.kind = 'retraction') GROUP BY 1"
)


def _grouped(group: str) -> str:
    return f"SELECT {group}, {_COUNTS} {_OURS} GROUP BY 1"


def _with_entries(column: str) -> str:
    return (
        f"SELECT e.{column}, {_COUNTS} FROM feedbacks f LEFT JOIN entries e ON f.target_type = 'entry' "
        "AND e.id = f.target_id WHERE project_id = 1 AND active = 1 AND f.at >= {{since}} GROUP BY 1"
    )


def _by_variant(group: str) -> str:
    return (
        f"SELECT {group}, {_COUNTS} FROM session_tags t JOIN feedbacks f ON f.session_seq = t.session_seq "
        "WHERE t.project_id = 1 AND t.key = 'variant' AND active = 1 AND f.at >= {{since}} GROUP BY {places}"
    )


def _said(*statements: str) -> list[str]:
    return [statement.replace("{{since}}", "{since}") for statement in statements]


BY_HAND: dict[str, list[str]] = {
    "trend": _said(_grouped(f"f.at / {_DAY}"), _SIGNALS.replace("{group}", f"e.at / {_DAY}")),
    "trend by variant": _said(_by_variant(f"t.value, f.at / {_DAY}").replace("{places}", "1, 2")),
    "by variant": _said(
        _by_variant("t.value").replace("{places}", "1"),
        "SELECT value, count(*) FROM session_tags WHERE project_id = 1 AND key = 'variant' GROUP BY 1",
    ),
    "by dataset": _said(_with_entries("dataset"), _SIGNALS.replace("{group}", "e.dataset_id")),
    "by model": _said(_with_entries("model")),
    "by author kind": _said(_grouped("author_kind"), _SIGNALS.replace("{group}", "author_kind")),
    "coverage": _said(
        "SELECT count(*) FROM entries e JOIN sessions s ON s.seq = e.session_seq WHERE s.project_id = 1 "
        "AND e.at >= {{since}}",
        "SELECT count(DISTINCT target_id), target_type FROM feedbacks f WHERE project_id = 1 AND active = 1 "
        "AND f.at >= {{since}} GROUP BY 2",
        "SELECT count(*) FROM executions WHERE project_id = 1 AND at >= {{since}}",
        "SELECT count(*) FROM receipts WHERE at >= {{since}}",
        "SELECT count(DISTINCT receipt_id) FROM events WHERE project_id = 1 AND kind = 'signal' AND at >= {{since}}",
    ),
    "cache": _said(
        "SELECT decision, gate, count(*) FROM decisions WHERE project_id = 1 AND at >= {{since}} GROUP BY 1, 2",
        "SELECT * FROM decisions WHERE project_id = 1 AND at >= {{since}} ORDER BY at DESC LIMIT 20",
    ),
}
"""By the name of the report; `{since}` is a stored time."""
