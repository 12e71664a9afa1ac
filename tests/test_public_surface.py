from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Sequence
from types import ModuleType

import pytest

import heedful
import heedful.compat.cognee as compat_cognee
import heedful.compat.mongodb_session_manager as compat_manager
import heedful.compat.text2everything as compat_text2everything
from heedful import Heedful, Hit, SignalResult, notifications
from heedful.api import (
    Chat,
    ChatSessions,
    Connectors,
    Executions,
    FeedbackService,
    GoldenExamples,
    Insight,
    Jobs,
    Keys,
    Review,
    Sessions,
)
from heedful.interfaces.cli.command_table import COMMANDS
from heedful.interfaces.cli.main import cli
from heedful.model import BulkDeletion, CacheLookup, CacheMatch, ChatAnswer, ExecutionFeedback, FactStats


def test_the_public_names_are_these_and_sorted() -> None:
    assert heedful.__all__ == [
        "AsyncHeedful",
        "Conflict",
        "Document",
        "Entry",
        "FactStats",
        "Feedback",
        "Forbidden",
        "Heedful",
        "HeedfulError",
        "Hit",
        "Improvement",
        "Invalid",
        "NormalisedRating",
        "NotFound",
        "PolicyChange",
        "PolicyInUse",
        "Recall",
        "Receipt",
        "RegressReport",
        "RememberResult",
        "RemoteHeedful",
        "Retraction",
        "Satisfaction",
        "Session",
        "Signal",
        "SignalResult",
        "Supersession",
        "Unavailable",
        "UsefulnessStats",
        "__version__",
        "aconnect",
        "aopen",
        "as_prompt",
        "connect",
        "etag",
        "normalise_rating",
        "open",
        "reembed",
    ]
    assert heedful.__all__ == sorted(heedful.__all__)


def test_nothing_else_leaks() -> None:
    result = {
        name for name in dir(heedful) if not name.startswith("_") and not isinstance(getattr(heedful, name), ModuleType)
    }
    assert result == set(heedful.__all__) - {"__version__"}


def test_every_public_name_is_documented() -> None:
    for name in heedful.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(heedful, name))


def test_the_methods_are_these() -> None:
    assert {name for name in dir(Heedful) if name[0] != "_" and inspect.isfunction(getattr(Heedful, name))} == {
        "check_facts",
        "close",
        "create_dataset",
        "datasets",
        "detect",
        "audit",
        "doctor",
        "fact",
        "fact_history",
        "fact_stats",
        "facts",
        "forget",
        "get_dataset",
        "improve",
        "recall",
        "receipt",
        "regress",
        "remember",
        "replay",
        "retract",
        "policy",
        "set_policy",
        "signal",
        "signal_recall",
        "supersede",
        "usefulness_stats",
    }


def test_the_methods_of_sessions_are_these() -> None:
    assert {name for name in vars(Sessions) if not name.startswith("_")} == {
        "add_entry",
        "add_feedback",
        "add_message",
        "add_messages",
        "add_session_feedback",
        "alerts",
        "create",
        "delete",
        "delete_feedback",
        "delete_message",
        "delete_metadata",
        "deliver_alerts",
        "discard_alert",
        "entries",
        "entry",
        "exists",
        "feedback_metrics",
        "feedbacks",
        "get",
        "get_metadata",
        "list",
        "messages",
        "rate",
        "update_message",
        "update_metadata",
    }


def test_the_methods_of_insight_are_these() -> None:
    assert {name for name in vars(Insight) if not name.startswith("_")} == {
        "cache",
        "coverage",
        "dictionary",
        "digest",
        "export",
        "export_training",
        "notes",
        "rows",
        "satisfaction",
        "themes",
        "training",
        "trend",
    }


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (Connectors, {"confirm", "create", "delete", "get", "list", "refresh", "schema"}),
        (Executions, {"delete", "execute_from_chat", "execute_query", "get", "list"}),
        (
            FeedbackService,
            {
                "bulk_delete",
                "create",
                "create_negative",
                "create_positive",
                "delete",
                "get",
                "get_feedback_for_message",
                "list",
                "list_negative",
                "list_positive",
                "update",
            },
        ),
        (
            Chat,
            {
                "chat_to_answer",
                "chat_to_sql",
                "confirm_suggestion",
                "execution_cache_coverage",
                "execution_cache_lookup",
            },
        ),
        (ChatSessions, {"create", "delete", "get", "get_questions", "list"}),
        (GoldenExamples, {"create", "delete", "get", "import_examples", "import_file", "list", "promote", "update"}),
        (Review, {"ask_again", "assign", "dismiss", "get", "list", "fix", "reopen", "resolve", "undo"}),
        (Keys, {"create", "create_token", "list", "revoke", "rotate_signing"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_methods_about_executions_are_these(owner: type, names: set[str]) -> None:
    assert {name for name in vars(owner) if not name.startswith("_")} == names
    for name in names:
        assert inspect.getdoc(getattr(owner, name)), name


def test_a_store_has_these_attributes_and_no_others(store: Heedful) -> None:
    attributes = {name: getattr(store, name) for name in dir(store) if name[0] != "_"}
    assert {name: type(value) for name, value in attributes.items() if not callable(value)} == {
        "sessions": Sessions,
        "insight": Insight,
        "connectors": Connectors,
        "executions": Executions,
        "feedback": FeedbackService,
        "chat": Chat,
        "chat_sessions": ChatSessions,
        "golden_examples": GoldenExamples,
        "review": Review,
        "keys": Keys,
        "jobs": Jobs,
    }


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (notifications, ["Channel", "Email", "Slack", "Sns", "Webhook", "verify"]),
        (
            compat_cognee,
            [
                "RecallResult",
                "SearchType",
                "SessionQAEntry",
                "close",
                "configure",
                "improve",
                "recall",
                "remember",
                "session",
            ],
        ),
        (
            compat_manager,
            [
                "MongoDBSessionManager",
                "MongoDBSessionManagerFactory",
                "close_global_factory",
                "create_combined_hook",
                "create_mongodb_session_manager",
                "get_global_factory",
                "initialize_global_factory",
            ],
        ),
        (compat_text2everything, ["Text2EverythingClient"]),
    ],
    ids=["alerts", "cognee", "mongodb_session_manager", "text2everything"],
)
def test_the_names_of_the_other_modules_are_these(module: ModuleType, names: list[str]) -> None:
    assert module.__all__ == names
    for name in names:
        assert inspect.getdoc(getattr(module, name)), name


def test_open_has_the_documented_parameters() -> None:
    assert list(inspect.signature(heedful.open).parameters) == [
        "url_or_path",
        "project",
        "clock",
        "embedding",
        "language_model",
        "sessions",
        "feedback_hook",
        "metadata_hook",
        "auto_improve",
        "worker",
    ]


def test_feedback_has_the_documented_parameters_and_defaults() -> None:
    parameters = inspect.signature(Sessions.add_feedback).parameters
    assert list(parameters)[:5] == ["self", "session_id", "qa_id", "feedback_text", "feedback_score"]
    assert [parameters[name].default for name in ("feedback_text", "feedback_score", "author")] == [None, None, None]
    assert list(inspect.signature(Heedful.improve).parameters) == ["self", "dataset", "session_ids"]


@pytest.mark.parametrize("opened", [Heedful, heedful.RemoteHeedful, heedful.AsyncHeedful])
def test_help_shows_plain_types(opened: type) -> None:
    recall = opened.recall  # type: ignore[attr-defined]
    signature = inspect.signature(recall)
    assert (signature.parameters["query"].annotation, signature.parameters["top_k"].annotation) == (str, int)
    assert signature.return_annotation is heedful.Recall
    assert inspect.getsource(recall).lstrip().startswith("@call(")


def test_recall_has_the_documented_parameters_and_defaults() -> None:
    parameters = inspect.signature(Heedful.recall).parameters
    documented = {
        "dataset": "main_dataset",
        "top_k": 10,
        "mode": "hybrid",
        "where": None,
        "boost_by_usefulness": None,
        "usefulness_weight": 0.3,
        "feedback_influence": None,
        "min_usefulness": 0.0,
        "explain": False,
        "session_id": None,
        "answer": False,
        "on_token": None,
    }
    assert {name: parameters[name].default for name in documented} == documented


def test_remember_has_the_documented_parameters_and_defaults() -> None:
    parameters = inspect.signature(Heedful.remember).parameters
    assert list(parameters)[:5] == ["self", "texts", "dataset", "metadata", "source"]
    assert [parameters[name].default for name in ("dataset", "metadata", "source")] == ["main_dataset", None, None]
    assert parameters["self_improvement"].default is False


def test_the_cache_has_the_documented_parameters_and_defaults() -> None:
    parameters = inspect.signature(Chat.execution_cache_lookup).parameters
    documented = {
        "connector_id": None,
        "max_age_days": 30,
        "similarity_threshold": 0.65,
        "limit": 50,
        "top_n": 5,
        "only_positive_feedback": False,
        "reuse": "sql",
    }
    assert list(parameters)[:2] == ["self", "user_query"]
    assert {name: parameters[name].default for name in documented} == documented


def test_the_documented_fields_of_executions_are_there() -> None:
    assert {"cache_hit", "matches", "candidates_checked"} <= set(CacheLookup.model_fields)
    assert {
        "execution",
        "similarity_score",
        "has_feedback",
        "feedback_is_positive",
        "feedback_comment",
        "decision",
        "reason",
        "question",
        "differences",
        "age_days",
        "stale",
    } <= set(CacheMatch.model_fields)
    assert {"id", "feedback", "is_positive", "execution_id", "chat_message_id"} <= set(ExecutionFeedback.model_fields)
    assert {"sql_query", "answer", "chat_message_id", "execution_result"} <= set(ChatAnswer.model_fields)
    assert set(BulkDeletion.model_fields) == {"deleted_count", "failed_ids"}


def test_the_documented_fields_are_there() -> None:
    assert {"fact_id", "text", "score", "relevance", "usefulness", "usefulness_source", "metadata"} <= set(
        Hit.model_fields
    )
    assert {"processed", "updated_facts", "errors", "event_ids"} <= set(SignalResult.model_fields)
    assert {"overall_usefulness", "signal_count", "signal_breakdown", "last_signal_at", "contexts"} <= set(
        FactStats.model_fields
    )
    documented = ["qa_id", "question", "answer", "context", "time", "feedback_text", "feedback_score"]
    assert list(heedful.Entry.model_fields)[:7] == documented
    assert {"qa_id", "answer", "session_id"} <= set(heedful.Recall.model_fields)
    assert list(heedful.Signal.model_fields)[:5] == ["fact_id", "signal_type", "query", "confidence", "context"]


OPTIONAL = (
    *("onnxruntime", "tokenizers", "alembic", "wordllama", "pypdf", "pymongo", "boto3", "duckdb", "psycopg"),
    *("cryptography", "fastapi", "uvicorn", "mcp", "prometheus_client"),
)
HEAVY = ("sqlalchemy", "numpy", "sqlglot")


def loaded(code: str, unwanted: Sequence[str]) -> list[str]:
    """Which of these modules a process has loaded after running some code."""
    script = f"import sys\n{code}\nprint([name for name in {tuple(unwanted)} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found: list[str] = ast.literal_eval(done.stderr.splitlines()[-1])
    return found


@pytest.mark.slow
def test_importing_is_light() -> None:
    # Opening a store needs the database and the indexes; what is optional stays out until it is used.
    assert loaded("import heedful; heedful.open", (*OPTIONAL, "httpx", "rich")) == []
    assert loaded("import heedful", (*OPTIONAL, *HEAVY, "pydantic", "httpx", "asyncio")) == []


@pytest.mark.slow
def test_a_client_needs_neither_a_database_nor_a_model() -> None:
    calls = "import heedful; client = heedful.connect('http://127.0.0.1:9', api_key='k'); client.close()"
    assert loaded(calls, (*OPTIONAL, *HEAVY)) == []
    assert loaded("from heedful import AsyncHeedful, RemoteHeedful, aconnect", (*OPTIONAL, *HEAVY)) == []


@pytest.mark.parametrize("before", ["gc.enable()", "gc.disable()", "gc.freeze()"])
def test_the_first_use_leaves_the_garbage_collector_as_it_was(before: str) -> None:
    script = (
        f"import gc; {before}; was = gc.isenabled(), gc.get_freeze_count() > 0\n"
        "import heedful; heedful.Invalid; print(was == (gc.isenabled(), gc.get_freeze_count() > 0))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.slow
def test_a_query_process_loads_neither_the_store_nor_the_models() -> None:
    # What it holds counts against the memory of a query.
    begin = (
        "from types import ModuleType; import pathlib, importlib.util as found\n"
        "package = ModuleType('heedful')\n"
        "package.__path__ = [str(pathlib.Path(found.find_spec('heedful').origin).parent)]\n"
        "sys.modules['heedful'] = package\n"
        "from heedful.sql.sandbox.handler import serve"
    )
    assert loaded(begin, (*OPTIONAL, "numpy", "heedful.storage", "heedful.model", "heedful.engine")) == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_help_of_the_command_line_loads_no_command(arguments: list[str]) -> None:
    call = f"from heedful.interfaces.cli import main; sys.argv[1:] = {arguments}\ntry: main()\nexcept SystemExit: pass"
    assert loaded(call, (*OPTIONAL, *HEAVY, "httpx", "rich")) == []


def test_the_command_line_says_of_each_command_what_the_command_says() -> None:
    for name, place in COMMANDS.items():
        assert cli.commands[name].get_short_help_str(limit=1_000) == place.help
