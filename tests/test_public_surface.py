from __future__ import annotations

import inspect
from types import ModuleType

import heedful
from heedful import Heedful, Hit, SignalResult
from heedful.model import FactStats


def test_the_public_names_are_these_and_sorted() -> None:
    assert heedful.__all__ == [
        "AsyncHeedful",
        "Conflict",
        "FactStats",
        "Forbidden",
        "Heedful",
        "HeedfulError",
        "Hit",
        "Invalid",
        "NotFound",
        "Recall",
        "Receipt",
        "RememberResult",
        "Retraction",
        "Signal",
        "SignalResult",
        "Supersession",
        "Unavailable",
        "UsefulnessStats",
        "__version__",
        "aopen",
        "open",
        "reembed",
    ]
    assert heedful.__all__ == sorted(heedful.__all__)


def test_nothing_else_leaks() -> None:
    found = {
        name for name, value in vars(heedful).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert found == set(heedful.__all__) - {"__version__"}


def test_every_public_name_is_documented() -> None:
    for name in heedful.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(heedful, name))


def test_the_methods_are_these() -> None:
    assert {name for name in vars(Heedful) if not name.startswith("_")} == {
        "close",
        "datasets",
        "detect",
        "doctor",
        "fact_stats",
        "forget",
        "recall",
        "receipt",
        "remember",
        "replay",
        "retract",
        "set_policy",
        "signal",
        "signal_recall",
        "supersede",
        "usefulness_stats",
    }


def test_recall_has_the_documented_parameters_and_defaults() -> None:
    parameters = inspect.signature(Heedful.recall).parameters
    documented = {
        "dataset": "main_dataset",
        "top_k": 10,
        "mode": "hybrid",
        "where": None,
        "boost_by_usefulness": False,
        "usefulness_weight": 0.3,
        "min_usefulness": 0.0,
        "explain": False,
    }
    assert {name: parameters[name].default for name in documented} == documented


def test_remember_has_the_documented_parameters_and_defaults() -> None:
    parameters = inspect.signature(Heedful.remember).parameters
    assert list(parameters)[:5] == ["self", "texts", "dataset", "metadata", "source"]
    assert [parameters[name].default for name in ("dataset", "metadata", "source")] == ["main_dataset", None, None]


def test_the_documented_fields_are_there() -> None:
    assert {"fact_id", "text", "score", "relevance", "usefulness", "usefulness_source", "metadata"} <= set(
        Hit.model_fields
    )
    assert {"processed", "updated_facts", "errors", "event_ids"} <= set(SignalResult.model_fields)
    assert {"score", "signal_count", "signal_breakdown", "last_signal_at", "contexts"} <= set(FactStats.model_fields)
    assert list(heedful.Signal.model_fields)[:5] == ["fact_id", "signal_type", "query", "confidence", "context"]


def test_importing_is_light() -> None:
    import subprocess
    import sys

    heavy = "('onnxruntime', 'tokenizers', 'alembic', 'wordllama', 'pypdf')"
    script = f"import sys, heedful; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
