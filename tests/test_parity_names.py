"""Engine, clients, REST and command line: the same names, defaults and types; what differs is listed with a reason."""

from __future__ import annotations

import inspect
import re
from typing import Any, get_type_hints

import click
import pytest
from cli_commands import leaf_commands

from heedful.aio import AsyncHeedful
from heedful.api import ALL_CALLS, CALLS, NAMESPACES
from heedful.api.calls import CALLBACKS, HEADERS, LOCAL_ONLY, Call, calls_of
from heedful.api.parameters import UNCHANGED
from heedful.engine import all_handlers
from heedful.interfaces.cli.main import cli
from heedful.interfaces.client.surface import RemoteHeedful

ALL = list(CALLS.values())
EMPTY = inspect.Parameter.empty

READS_BY_POST = {
    "recall": "its arguments don't fit in a query string; it keeps a receipt; with a session it needs write",
    "detect": "an answer doesn't fit in a query string",
    "replay": "its arguments don't fit in a query string",
    "review.ask_again": "it may ask a language model, which costs something",
}
"""Operations for which a key to read is enough, though they are no GET."""

COMMANDS = {
    "recall": "recall",
    "remember": "remember",
    "improve": "improve",
    "signal": "signal",
    "signal_recall": "signal",
    "detect": "detect",
    "retract": "retract",
    "supersede": "supersede",
    "policy": "policy",
    "set_policy": "policy",
    "forget": "forget",
    "facts": "facts",
    "fact_stats": "stats",
    "usefulness_stats": "stats",
    "replay": "replay",
    "regress": "regress",
    "datasets": "datasets",
    "check_facts": "doctor",
    "doctor": "doctor",
    "audit": "audit",
    "sessions.create": "sessions add",
    "sessions.list": "sessions list",
    "sessions.get": "sessions show",
    "sessions.delete": "sessions remove",
    "sessions.add_message": "sessions add-message",
    "sessions.messages": "sessions messages",
    "sessions.update_message": "sessions update-message",
    "sessions.delete_message": "sessions remove-message",
    "sessions.update_metadata": "sessions update-metadata",
    "sessions.delete_metadata": "sessions remove-metadata",
    "sessions.add_entry": "sessions add-entry",
    "sessions.entries": "sessions entries",
    "sessions.entry": "sessions entry",
    "sessions.add_feedback": "sessions add-feedback",
    "sessions.rate": "sessions rate",
    "sessions.delete_feedback": "sessions remove-feedback",
    "sessions.add_session_feedback": "sessions add-session-feedback",
    "sessions.feedbacks": "sessions feedbacks",
    "sessions.feedback_metrics": "sessions feedback-metrics",
    "sessions.alerts": "sessions alerts",
    "sessions.discard_alert": "sessions discard-alert",
    "insight.satisfaction": "insight satisfaction",
    "insight.trend": "insight trend",
    "insight.coverage": "insight coverage",
    "insight.cache": "insight cache",
    "insight.themes": "insight themes",
    "insight.notes": "insight notes",
    "insight.digest": "digest",
    "insight.export": "insight export",
    "insight.export_training": "export training",
    "insight.dictionary": "insight dictionary",
    "connectors.create": "connect",
    "connectors.list": "connectors list",
    "connectors.refresh": "connectors refresh",
    "connectors.confirm": "connectors confirm",
    "connectors.delete": "connectors remove",
    "executions.execute_query": "run",
    "executions.list": "executions list",
    "executions.get": "executions show",
    "executions.delete": "executions remove",
    "feedback.create": "feedback add",
    "feedback.list": "feedback list",
    "feedback.get": "feedback show",
    "feedback.update": "feedback update",
    "feedback.delete": "feedback retract",
    "chat.execution_cache_lookup": "cache lookup",
    "chat.confirm_suggestion": "cache confirm-suggestion",
    "chat.execution_cache_coverage": "cache coverage",
    "chat.chat_to_answer": "ask",
    "golden_examples.create": "golden add",
    "golden_examples.list": "golden list",
    "golden_examples.promote": "golden promote",
    "golden_examples.import_file": "golden import",
    "golden_examples.update": "golden update",
    "golden_examples.delete": "golden remove",
    "review.list": "review list",
    "review.get": "review show",
    "review.assign": "review assign",
    "review.resolve": "review resolve",
    "review.dismiss": "review dismiss",
    "review.reopen": "review reopen",
    "review.fix": "review fix",
    "review.ask_again": "review ask-again",
    "review.undo": "review undo",
    "keys.create": "keys add",
    "keys.list": "keys list",
    "keys.revoke": "keys revoke",
    "keys.rotate_signing": "keys rotate-signing",
    "keys.create_token": "keys token",
    "jobs.list": "jobs list",
    "jobs.get": "jobs show",
    "jobs.cancel": "jobs cancel",
    "jobs.retry": "jobs retry",
}
"""The command that does what a method does."""

NO_COMMAND = {
    "close": "a command closes what it opened",
    "fact": "stats shows it, with what people say of it",
    "fact_history": "explain and stats show the signals; the dashboard draws them",
    "create_dataset": "remember makes it",
    "get_dataset": "stats counts what is in it",
    "receipt": "signal --recall takes ranks, and looks them up by itself",
    "sessions.exists": "sessions show says so",
    "sessions.add_messages": "people write one message at a time",
    "sessions.get_metadata": "sessions show shows it",
    "sessions.deliver_alerts": "channels are objects of a program",
    "insight.rows": "insight export writes all of them",
    "insight.training": "export training writes all lines",
    "connectors.get": "connectors list shows all there is to it",
    "connectors.schema": "people look at a schema with the tools of the database",
    "executions.execute_from_chat": "ask runs what it writes",
    "feedback.create_positive": "feedback add --positive",
    "feedback.create_negative": "feedback add --negative",
    "feedback.list_positive": "feedback list --positive",
    "feedback.list_negative": "feedback list --negative",
    "feedback.bulk_delete": "people take back one at a time",
    "feedback.get_feedback_for_message": "messages of a chat are seen by programs",
    "chat.chat_to_sql": "ask shows the SQL, too",
    "chat_sessions.create": "ask makes one where none is named",
    "chat_sessions.list": "sessions list shows them, too",
    "chat_sessions.get": "sessions show shows it, too",
    "chat_sessions.delete": "sessions remove removes it, too",
    "chat_sessions.get_questions": "sessions messages shows them, too",
    "golden_examples.import_examples": "golden import reads them from a file",
    "golden_examples.get": "golden list shows all there is to it",
    "jobs.improve": "improve --background",
}

REPEATED = {
    "sensitive_columns": "--sensitive-column",
    "session_ids": "--session-id",
    "policies": "--policy",
    "weights": "--weight",
    "parameters": "--parameter",
    "remarks": "--remark",
    "scopes": "--scope",
    "targets": "--target",
}
"""Lists: an option names one of them, and may be repeated."""

SPELLED = {
    ("remember", "texts"): "texts are arguments, and files have an option of their own",
    ("sessions.update_metadata", "metadata"): "KEY=VALUE are arguments",
    ("sessions.add_session_feedback", "feedback"): "its keys are options: --rating, --comment, --extra",
    ("insight.export", "overwrite"): "--force, as everywhere",
    ("insight.export_training", "overwrite"): "--force, as everywhere",
    ("regress", "embedding"): "--with-embedding: --embedding is the model of the store",
    ("signal", "signals"): "a signal for each FACT_ID; its fields are options",
    ("set_policy", "policy"): "NAME is an argument, where none stands for None",
    ("connectors.refresh", "connector_id"): "NAME is an argument, as connect takes it",
    ("connectors.confirm", "connector_id"): "NAME is an argument, as connect takes it",
    ("connectors.delete", "connector_id"): "NAME is an argument, as connect takes it",
    ("feedback.create", "is_positive"): "--positive or --negative",
    ("feedback.create", "feedback"): "--feedback goes to a parameter that has another name than its group",
    ("feedback.update", "is_positive"): "--positive or --negative",
    ("feedback.update", "feedback"): "--feedback goes to a parameter that has another name than its group",
}
"""Parameters that a command takes in another form."""

WITHOUT = {
    ("recall", "on_token"): "a callback",
    ("remember", "progress"): "a callback",
    ("insight.export_training", "progress"): "a callback",
    ("regress", "progress"): "a callback",
    ("sessions.add_message", "at"): "a command is run when it is said",
}
"""Parameters that no option sets."""


LOCAL = {"close", "golden_examples.import_file", "insight.export", "insight.export_training"}
"""What happens where the caller is: nothing of it is sent, or what is sent is another call."""


def _public(owner: type) -> list[str]:
    return [name for name, member in vars(owner).items() if callable(member) and not name.startswith("_")]


METHODS = [*ALL_CALLS, "close"]


def _parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(ALL_CALLS[name].signature.parameters) if name in ALL_CALLS else {}


RUN = dict(leaf_commands(cli))


@pytest.mark.parametrize("name", ALL_CALLS)
def test_a_handler_takes_the_parameters_of_its_call(name: str) -> None:
    handler, _ = all_handlers()[name]
    _, *taken = inspect.signature(handler).parameters.values()
    required = {each.name for each in taken if each.default is EMPTY and each.kind is not each.VAR_KEYWORD}
    assert required <= set(_parameters(name))
    if not any(each.kind is each.VAR_KEYWORD for each in taken):
        assert set(_parameters(name)) <= {each.name for each in taken}


def test_every_handler_is_that_of_a_call() -> None:
    assert sorted(all_handlers()) == sorted(ALL_CALLS)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_an_operation_or_local(name: str) -> None:
    assert (name in CALLS) != (name in LOCAL)


def test_every_operation_is_a_method() -> None:
    assert sorted(CALLS) == sorted(set(METHODS) - LOCAL)
    assert set(METHODS) >= LOCAL


@pytest.mark.parametrize("client", [RemoteHeedful, AsyncHeedful])
@pytest.mark.parametrize("place", NAMESPACES)
def test_clients_have_the_same_methods_with_the_same_parameters(client: Any, place: str) -> None:
    opened = client(*[None] * (len(inspect.signature(client).parameters)))
    theirs = getattr(opened, place) if place else opened
    for verb, call in calls_of(NAMESPACES[place]).items():
        declared = [given.replace(annotation=call.types[name]) for name, given in call.signature.parameters.items()]
        assert list(inspect.signature(getattr(theirs, verb)).parameters.values()) == declared
        assert get_type_hints(getattr(theirs, verb)).get("return") == call.types["return"]


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_every_parameter_has_one_place_on_the_wire(operation: Call) -> None:
    made = operation
    placed = [*made.in_path, *made.headers, *made.callbacks, *made.request.model_fields]
    assert sorted(placed) == sorted(_parameters(operation.name).keys() - LOCAL_ONLY)
    assert set(made.headers) <= set(HEADERS)
    assert set(made.callbacks) <= CALLBACKS
    assert made.result.json_schema() is not None


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_the_wire_has_the_engines_defaults_and_types(operation: Call) -> None:
    hints = operation.types
    for name, field in operation.request.model_fields.items():
        default = _parameters(operation.name)[name].default
        assert field.is_required() == (default is EMPTY), name
        if not field.is_required():
            assert field.default == (None if default is UNCHANGED else default), name
        if operation.meanings[name].wire is None:
            assert field.annotation == hints[name], name
    for name in operation.in_path:
        assert str in (hints[name], operation.meanings[name].wire)
        assert _parameters(operation.name)[name].default is EMPTY


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_scopes_are_sane(operation: Call) -> None:
    if operation.method == "GET":
        assert operation.scope in ("read", "admin")
    elif operation.scope == "read":
        assert operation.name in READS_BY_POST
    if operation.namespace == "keys" and operation.name != "keys.create_token":
        assert operation.scope == "admin"


def test_what_reads_by_post_is_no_more_than_listed() -> None:
    assert {each.name for each in ALL if each.method != "GET" and each.scope == "read"} == set(READS_BY_POST)


def test_no_two_operations_share_a_method_and_path() -> None:
    routes = [(each.method, re.sub(r"{\w+}", "{}", each.path)) for each in ALL]
    assert len(set(routes)) == len(routes)


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_a_path_leads_to_its_own_operation(operation: Call) -> None:
    concrete = re.sub(r"{\w+}", "an-id", operation.path)
    rivals = [each for each in ALL if each.method == operation.method]
    matching = [each for each in rivals if re.fullmatch(re.sub(r"{\w+}", "[^/]+", each.path), concrete)]
    assert matching[0] is operation


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_command_or_a_reason(name: str) -> None:
    assert (name in COMMANDS) != (name in NO_COMMAND)
    assert name in NO_COMMAND or COMMANDS[name] in RUN


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_the_names_and_defaults_of_their_methods(name: str) -> None:
    command = RUN[COMMANDS[name]]
    options = {each.name: each for each in command.params}
    defaults = command.make_context(COMMANDS[name], [], resilient_parsing=True).params
    for parameter in _parameters(name).values():
        if (name, parameter.name) in SPELLED or (name, parameter.name) in WITHOUT:
            continue
        assert parameter.name in options, f"{COMMANDS[name]} has no {parameter.name}"
        option = options[parameter.name]
        if isinstance(option, click.Option):
            spelled = REPEATED.get(parameter.name) if option.multiple else None
            assert (spelled or f"--{parameter.name.replace('_', '-')}") in option.opts
        given = defaults[parameter.name]
        assert _same(given, parameter), f"{parameter.name} is {given!r} in {COMMANDS[name]}"


def _same(given: Any, parameter: inspect.Parameter) -> bool:
    if given is None or given == ():
        # A command may do what two methods do, so that neither's argument is required.
        return parameter.default in (EMPTY, None, ()) or parameter.default is UNCHANGED
    return bool(given == parameter.default)


@pytest.mark.parametrize(("name", "parameter"), [*SPELLED, *WITHOUT])
def test_exceptions_are_about_parameters_that_exist(name: str, parameter: str) -> None:
    assert parameter in _parameters(name)
