"""Writes docs/reference from the code: `python -m docs.generate`, or `make docs`."""

from __future__ import annotations

import ast
import enum
import inspect
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any, cast, get_args

import click
from pydantic import BaseModel

import heedful
from docs import stubs
from docs.markdown import NOTICE, bullets, listed, table
from docs.meanings import CODES, FIELDS, LIMITS, PARAMETERS, SERVER_SETTINGS, SETTINGS
from docs.remedies import troubleshooting_page
from docs.rest import rest_page
from docs.stubs import ALIASES
from heedful import clock, errors, model, notifications, settings, simulate, testing, transfer
from heedful.api import (
    ALL_CALLS,
    Chat,
    ChatSessions,
    Connectors,
    Executions,
    FeedbackService,
    GoldenExamples,
    Insight,
    Jobs,
    Keys,
    Memory,
    Review,
    Sessions,
    parameters,
)
from heedful.api.calls import Call, calls_of
from heedful.api.result_fields import attribute_docs, describe_field
from heedful.compat import cognee, mongodb_session_manager, text2everything
from heedful.insight.export_files import TABLES
from heedful.interfaces.cli.command_table import GROUPS
from heedful.interfaces.cli.main import cli
from heedful.model import limits
from heedful.notifications import channels
from heedful.providers import embedding, llm
from heedful.sessions import hooks
from heedful.sql.secrets import KEY_VARIABLE

REFERENCE = Path(__file__).parent / "reference"
SOURCE = Path(heedful.__file__).parent
EXECUTIONS: dict[str, type] = {
    "connectors": Connectors,
    "executions": Executions,
    "feedback": FeedbackService,
    "chat": Chat,
    "chat_sessions": ChatSessions,
    "golden_examples": GoldenExamples,
    "keys": Keys,
    "jobs": Jobs,
}
"""What a store has for executions, for keys and for jobs, by the name of the attribute."""


def pages() -> dict[str, str]:
    """Every generated page, by the name of its file."""
    made = {
        "python.md": python_page(),
        "sessions.md": sessions_page(),
        "executions.md": executions_page(),
        "hooks-and-alerts.md": hooks_page(),
        "transfer.md": transfer_page(),
        "exports.md": exports_page(),
        "compat.md": compat_page(),
        "cli.md": cli_page(),
        "rest.md": rest_page(),
        "settings.md": settings_page(),
        "errors.md": errors_page(),
        "troubleshooting.md": troubleshooting_page(codes()),
    }
    return {name: text.rstrip() + "\n" for name, text in made.items()}


def main() -> None:
    """Writes the pages that changed."""
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages().items():
        file = REFERENCE / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"wrote docs/reference/{name}")
    for file, text in stubs.stubs().items():
        file.write_text(text, encoding="utf-8")


def exports_page() -> str:
    """Every table that can be exported, with its columns."""
    parts = [
        "# Exports",
        NOTICE,
        "What `insight.export`, `insight.rows` and `heedful insight export` write, by table. [Export, report and send "
        "digests](../howto/reports.md) says how, and what the types become in a file.",
    ]
    for each in TABLES.values():
        rows = [[f"`{column.name}`", column.type, column.meaning] for column in each.columns]
        parts += [f"## {each.name}", each.meaning, table(["column", "type", "meaning"], rows)]
    return "\n\n".join(parts)


# Python


def python_page() -> str:
    """The public names of `heedful`, the models its methods return, and the doubles for tests."""
    parts = [
        "# Python",
        NOTICE,
        "Every public name of `heedful`, what its methods return, and the doubles in `heedful.testing` and "
        "`heedful.simulate`. [Sessions and insight](sessions.md), [executions](executions.md), [hooks and "
        "alerts](hooks-and-alerts.md) and [the interfaces of other systems](compat.md) are on pages of their own.",
        "## Opening a store",
        *(_function(getattr(heedful, name), f"heedful.{name}") for name in ("open", "aopen", "reembed")),
        "## Connecting to a server",
        *(_function(getattr(heedful, name), f"heedful.{name}") for name in ("connect", "aconnect", "etag")),
        "## Ratings and prompts",
        *(_function(getattr(heedful, name), f"heedful.{name}") for name in ("normalise_rating", "as_prompt")),
        "## heedful.Heedful",
        _doc(heedful.Heedful),
        *(_function(method, name) for name, method in methods(heedful.Heedful)),
        "### sessions",
        f"{_doc(Sessions)} [Its methods](sessions.md#sessions).",
        "### insight",
        f"{_doc(Insight)} [Its methods](sessions.md#insight).",
        "### review",
        f"{_doc(Review)} [Its methods](sessions.md#review).",
        *(
            part
            for place, owner in EXECUTIONS.items()
            for part in (f"### {place}", f"{_doc(owner)} [Its methods](executions.md#{place}).")
        ),
        "## heedful.RemoteHeedful",
        f"{_doc(heedful.RemoteHeedful)} It has all that `heedful.Heedful` has.",
        "## heedful.AsyncHeedful",
        _doc(heedful.AsyncHeedful),
        "It has "
        + listed(f"`{name}`" for name, _ in methods(heedful.AsyncHeedful))
        + ", and "
        + listed(f"`{place}`" for place in ("sessions", "insight", "review", *EXECUTIONS))
        + " with all their methods, awaited.",
        "## Models",
        "All are frozen pydantic models: `model_dump()` and `model_dump_json()` work on each. "
        + listed(f"`heedful.{name}`" for name in heedful.__all__ if _is_model(getattr(heedful, name)))
        + " are public by that name; the others are in `heedful.model`.",
        *(_model(each) for each in _models()),
        "## Types",
        _types(),
        "## Errors",
        bullets(
            f"`heedful.{name}`: {_doc(getattr(heedful, name))}"
            for name in heedful.__all__
            if _is_error(getattr(heedful, name))
        ),
        "Their codes are listed in [errors.md](errors.md).",
        "## heedful.testing",
        _doc(testing),
        *(_double(testing, name) for name in testing.__all__),
        "## heedful.simulate",
        _doc(simulate),
        *(_double(simulate, name) for name in simulate.__all__),
        "## heedful.\\_\\_version\\_\\_",
        "The version, as text.",
    ]
    return "\n\n".join(parts)


def sessions_page() -> str:
    """The methods of `.sessions`, `.insight` and `.review`."""
    return "\n\n".join(
        [
            "# Sessions and insight",
            NOTICE,
            "What `heedful.open(…).sessions`, `.insight` and `.review` can do. What they return is in "
            "[the Python reference](python.md#models).",
            "## sessions",
            _doc(Sessions),
            *(_function(method, f"sessions.{name}") for name, method in methods(Sessions)),
            "## insight",
            _doc(Insight),
            *(_function(method, f"insight.{name}") for name, method in methods(Insight)),
            "## review",
            _doc(Review),
            *(_function(method, f"review.{name}") for name, method in methods(Review)),
        ]
    )


def executions_page() -> str:
    """The methods of what a store has for executions."""
    parts = [
        "# Executions",
        NOTICE,
        "What "
        + listed(f"`.{place}`" for place in EXECUTIONS)
        + " of `heedful.open(…)` can do. What they return is in [the Python reference](python.md#models).",
    ]
    for place, owner in EXECUTIONS.items():
        parts += [f"## {place}", _doc(owner)]
        parts += [_function(method, f"{place}.{name}") for name, method in methods(owner)]
    return "\n\n".join(parts)


def hooks_page() -> str:
    """Hooks, channels, and what a receiver of alerts needs."""
    ready = [hooks.create_combined_hook, hooks.validation_hook, hooks.audit_hook, hooks.AlertHook, hooks.AnalyticsHook]
    return "\n\n".join(
        [
            "# Hooks and alerts",
            NOTICE,
            "## heedful.sessions.hooks",
            _doc(hooks),
            *(_member(each, "heedful.sessions.hooks") for each in ready),
            "## heedful.notifications",
            _doc(notifications),
            *(_member(getattr(notifications, name), "heedful.notifications") for name in notifications.__all__),
            "A webhook has these headers: "
            + listed(f"`{each}`" for each in (channels.ALERT_ID, channels.TIMESTAMP, channels.SIGNATURE))
            + ".",
        ]
    )


def transfer_page() -> str:
    """Copies, exports, backups and verification."""
    members = (_member(getattr(transfer, name), "heedful.transfer") for name in transfer.__all__)
    return "\n\n".join(["# Transfer and verification", NOTICE, "## heedful.transfer", _doc(transfer), *members])


def compat_page() -> str:
    """The interfaces of other systems."""
    parts = ["# Interfaces of other systems", NOTICE]
    for module in (cognee, mongodb_session_manager, text2everything):
        parts += [f"## {module.__name__}", _doc(module)]
        parts += [_member(getattr(module, name), "") for name in module.__all__ if not _is_elsewhere(module, name)]
        elsewhere = [f"`{name}`" for name in module.__all__ if _is_elsewhere(module, name)]
        parts.append(f"Also {listed(elsewhere)}, from Heedful itself." if elsewhere else "")
    parts.append("It has these calls, which do what [those of the same name](executions.md) do:")
    parts += [f"```text\n{calls}\n```" for calls in _client_calls()]
    return "\n\n".join(part for part in parts if part)


def _client_calls() -> Iterator[str]:
    """The calls of each part of the client, as signatures."""
    for place, part in vars(text2everything.Text2EverythingClient()).items():
        if not place.startswith("_"):
            yield "\n".join(
                _signature(method, f"{place}.{name}", _parameters(method)) for name, method in methods(type(part))
            )


def _is_elsewhere(module: ModuleType, name: str) -> bool:
    return bool(getattr(module, name).__module__ != module.__name__)


def _member(each: Any, place: str) -> str:
    """A function or a class, with its methods."""
    name = f"{place}.{each.__name__}" if place else each.__name__
    if _is_model(each):
        return _model(each)
    if not isinstance(each, type):
        return _function(each, name)
    if issubclass(each, enum.Enum):
        return "\n\n".join([f"### {name}", _doc(each), listed(f"`{value.name}`" for value in each) + "."])
    made = "__init__" in vars(each) and not getattr(each, "_is_protocol", False)
    parts = [_function(each, name)] if made else [f"### {name}", _doc(each)]
    for method, member in methods(each):
        if inspect.getdoc(member):
            parts.append(_function(member, f"{each.__name__}.{method}").replace("### ", "#### ", 1))
    return "\n\n".join(part for part in parts if part)


def methods(owner: type) -> list[tuple[str, Callable[..., Any]]]:
    """The public methods of a class, in the order they are written; those of `Heedful` are the calls of its own."""
    if owner in (heedful.Heedful, heedful.AsyncHeedful):
        return [(verb, getattr(owner, verb)) for verb in (*calls_of(Memory), "close")]
    return [
        (name, getattr(owner, name))
        for name, member in vars(owner).items()
        if (callable(member) or isinstance(member, staticmethod)) and not name.startswith("_")
    ]


def _function(function: Callable[..., Any], name: str) -> str:
    parameters = _parameters(function)
    parts = [f"### {name}", f"```text\n{_signature(function, name, parameters)}\n```", _doc(function)]
    if parameters:
        rows = [
            [
                f"`{_spelled(each)}`",
                f"`{_annotation(each.annotation)}`",
                _default(each),
                _meaning(function, name, each.name),
            ]
            for each in parameters
        ]
        parts.append(table(["parameter", "type", "default", "meaning"], rows))
    return "\n\n".join(parts)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [each for each in inspect.signature(inspect.unwrap(function)).parameters.values() if each.name != "self"]


def _signature(function: Callable[..., Any], name: str, parameters: list[inspect.Parameter]) -> str:
    shown: list[str] = []
    keyword_only = False
    for each in parameters:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            shown.append("*")
        keyword_only = keyword_only or each.kind is inspect.Parameter.VAR_POSITIONAL
        shown.append(_spelled(each) + ("" if each.default is inspect.Parameter.empty else f"={_value(each.default)}"))
    prefix = "await " if inspect.iscoroutinefunction(function) else ""
    returned = "" if isinstance(function, type) else f" -> {_returned(function)}"
    line = f"{prefix}{name}({', '.join(shown)}){returned}"
    if len(line) <= 100:
        return line
    wrapped = textwrap.fill(", ".join(shown), 96, break_long_words=False, break_on_hyphens=False)
    return f"{prefix}{name}(\n{textwrap.indent(wrapped, '    ')}\n){returned}"


def _spelled(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    return f"**{parameter.name}" if parameter.kind is inspect.Parameter.VAR_KEYWORD else parameter.name


def _value(default: Any) -> str:
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    return default.__name__ if callable(default) else repr(default)


def _meaning(function: Callable[..., Any], method: str, parameter: str) -> str:
    """The meaning of a parameter: the same for a name everywhere, unless a call or the table gives another."""
    call: Call | None = getattr(function, "call", None)
    if call is not None:
        return str(call.meanings[parameter].meaning)
    keys = (f"{method}.{parameter}", f"{method.rpartition('.')[2]}.{parameter}", parameter)
    found = next((PARAMETERS[key] for key in keys if key in PARAMETERS), None) or _common_meanings().get(parameter)
    if found is None:
        raise KeyError(f"nothing is said of the parameter {parameter} of {method}: add it to docs/meanings.py")
    return found


@cache
def _common_meanings() -> dict[str, str]:
    """The meaning that most calls give to a parameter of this name."""
    said: dict[str, Counter[str]] = {}
    for call in ALL_CALLS.values():
        for name, means in call.meanings.items():
            said.setdefault(name, Counter())[str(means.meaning)] += 1
    return {name: meanings.most_common(1)[0][0] for name, meanings in said.items()}


def _default(parameter: inspect.Parameter) -> str:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        return ""
    return "required" if parameter.default is inspect.Parameter.empty else f"`{_value(parameter.default)}`"


def _annotation(annotation: Any) -> str:
    if not isinstance(annotation, str):
        return inspect.formatannotation(annotation)
    return ast.unparse(_Plain().visit(ast.parse(annotation, mode="eval"))).replace("'", '"')


class _Plain(ast.NodeTransformer):
    """Types without what is said of a parameter, which has a column of its own."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated" and isinstance(node.slice, ast.Tuple):
            return cast(ast.AST, self.visit(node.slice.elts[0]))
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self.visit(ast.Name(node.attr)) if ast.unparse(node.value) in ALIASES else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        written = _parameter_types().get(node.id)
        return node if written is None else cast(ast.AST, self.visit(written))


@cache
def _parameter_types() -> dict[str, ast.expr]:
    """The types of parameters, by name, as they are written in heedful.api.parameters."""
    return {
        statement.targets[0].id: statement.value
        for statement in ast.parse(inspect.getsource(parameters)).body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Subscript)
        and ast.unparse(statement.value.value) == "Annotated"
    }


def _returned(function: Callable[..., Any]) -> str:
    """The result of a function. Where `list` is a method, the module has another name for lists, which says nothing."""
    written = _annotation(inspect.signature(inspect.unwrap(function)).return_annotation)
    alias = getattr(sys.modules[function.__module__], written, None)
    if isinstance(alias, GenericAlias) and alias.__origin__ is list:
        return f"list[{get_args(alias)[0].__name__}]"
    return written


def _models() -> list[type[BaseModel]]:
    """The models that can be met through public names, in the order they are written."""
    known = {name: each for name, each in vars(model).items() if _is_noun(each)}
    functions: list[Callable[..., Any]] = [
        *(
            member
            for owner in (heedful.Heedful, Sessions, Insight, Review, *EXECUTIONS.values())
            for _, member in methods(owner)
        ),
        heedful.open,
        heedful.reembed,
    ]
    waiting = [*heedful.__all__, *map(_returned, functions)]
    met: set[str] = set()
    while waiting:
        for name in re.findall(r"\w+", waiting.pop()):
            if name in known and name not in met:
                met.add(name)
                waiting += _annotations(known[name]).values()
    return [each for name, each in known.items() if name in met]


def _model(each: type[BaseModel]) -> str:
    rows = []
    for name, field in each.model_fields.items():
        default = "" if field.is_required() else f"`{field.get_default(call_default_factory=True)!r}`"
        rows.append([f"`{name}`", f"`{_annotations(each)[name]}`", default, _field_meaning(each, name)])
    for name, member in vars(each).items():
        if isinstance(member, property) and member.fget is not None:
            returned = _annotation(inspect.signature(member.fget).return_annotation)
            rows.append([f"`{name}`", f"`{returned}`", "", _doc(member)])
    return "\n\n".join([f"### {each.__name__}", _doc(each), table(["field", "type", "default", "meaning"], rows)])


def _annotations(each: type[BaseModel]) -> dict[str, str]:
    """The types of a model's fields as they are written, inherited ones too."""
    return {
        name: kind for owner in reversed(each.__mro__) for name, kind in vars(owner).get("__annotations__", {}).items()
    }


def _field_meaning(each: type[BaseModel], name: str) -> str:
    return describe_field(each, name, FIELDS)


def _types() -> str:
    rows = [
        ["`Mode`", "one of " + listed(f"`{each}`" for each in get_args(model.Mode))],
        ["`SignalType`", "one of " + listed(f"`{each}`" for each in get_args(model.SignalType))],
        ["`UsefulnessSource`", "one of " + listed(f"`{each}`" for each in get_args(model.UsefulnessSource))],
        ["`PolicyName`", "one of " + listed(f"`{each}`" for each in get_args(model.PolicyName))],
        ["`Metadata`", "a mapping from text to what JSON can hold"],
        ["`NotBlank`", "a text with at least one visible character"],
        ["`Fraction`", "a number in [0, 1]"],
        ["`Clock`", f"`{_alias(clock.Clock)}`: returns the time"],
        ["`Progress`", f"`{_alias(parameters.Progress)}`: {attribute_docs(parameters)['Progress']}"],
        ["`Rating`", "one of " + listed(f"`{each}`" for each in get_args(model.Rating)) + "; None is neutral"],
        ["`JobStatus`", "one of " + listed(f"`{each}`" for each in model.JOB_STATUSES)],
        ["`JobKind`", "one of " + listed(f"`{each}`" for each in model.JOB_KINDS)],
        ["`OpinionTarget`", "one of " + listed(f"`{each}`" for each in model.OPINION_TARGETS)],
        ["`ReviewStatus`", "one of " + listed(f"`{each}`" for each in model.REVIEW_STATUSES)],
        ["`ReviewKind`", "one of " + listed(f"`{each}`" for each in get_args(model.ReviewKind))],
        ["`ReviewAction`", "one of " + listed(f"`{each}`" for each in get_args(model.ReviewAction))],
        ["`Fix`", "one of " + listed(f"`{each}`" for each in model.FIXES)],
        ["`Origin`", "one of " + listed(f"`{each}`" for each in get_args(model.Origin))],
        ["`Decision`", "one of " + listed(f"`{each}`" for each in get_args(model.Decision))],
        ["`Reuse`", "one of " + listed(f"`{each}`" for each in get_args(model.Reuse))],
        ["`Page[…]`", "a page of these: see `Page`"],
        ["`Hook`", "`hook(original_func, action, session_id, **kwargs)`: see [hooks](hooks-and-alerts.md)"],
        ["`OnToken`", f"`{_alias(llm.OnToken)}`: {attribute_docs(llm)['OnToken']}"],
        ["`LanguageModel`", f"{_doc(llm.LanguageModel)} It has `name` and `complete`."],
        ["`Embedder`", f"{_doc(embedding.Embedder)} It has {listed(_embedder_members())}."],
    ]
    return table(["name", "meaning"], rows)


def _embedder_members() -> Iterator[str]:
    return (f"`{name}`" for name in vars(embedding.Embedder) if not name.startswith("_"))


def _alias(alias: Any) -> str:
    return str(alias).replace("collections.abc.", "").replace("datetime.datetime", "datetime")


def _double(module: ModuleType, name: str) -> str:
    double = getattr(module, name)
    called = str(inspect.signature(double)).replace("'", "").removesuffix(" -> None")
    called = re.sub(
        r"<factory>",
        "[]",
        re.sub(r"datetime\.datetime\((.*?), tzinfo=datetime\.timezone\.utc\)", r"datetime(\1, tzinfo=UTC)", called),
    )
    shown = [f"`{method}{_arguments(member)}`: {_doc(member)}" for method, member in methods(double) if member.__doc__]
    parts = [f"### {module.__name__}.{name}", f"```text\n{name}{called}\n```", _doc(double), bullets(shown)]
    return "\n\n".join(part for part in parts if part)


def _arguments(function: Callable[..., Any]) -> str:
    parameters = [
        str(each) for each in inspect.signature(inspect.unwrap(function)).parameters.values() if each.name != "self"
    ]
    return f"({', '.join(parameters)})".replace("'", "")


# Command line


EXIT_CODES = (
    ("0", "All was done."),
    ("1", "Part of it was done, or a check found something wrong; or a question was answered with no."),
    ("2", "The line can't be understood, or a value can't be accepted. Nothing was done."),
    ("3", "What was named does not exist: a store, a project, a fact, a file. Nothing was done."),
    ("4", "It is refused: it contradicts what is stored, or the key may not do it. Nothing was done."),
    ("5", "Something that it needs can't be used now: a server, a database, a model, an extra. Try again later."),
    ("130", "Ctrl-C stopped it."),
)


def cli_page() -> str:
    """Every command, with its arguments and options."""
    parts = [
        "# Command line",
        NOTICE,
        "`heedful COMMAND …`. [How to use it](../howto/command-line.md) tells of tables, JSON, completion and scripts. "
        "These options hold for all commands, and may stand anywhere on the line:",
        _options(cli),
        "Results go to standard output; errors and progress go to standard error.",
        table(["exit code", "meaning"], [list(row) for row in EXIT_CODES]),
        "A command that reads or changes what is there fails if the store or the project is not there. It names those "
        "that are called alike, and makes nothing. In a store without any project, `default` counts as there. On a "
        "server, a project that is not there is an empty one. "
        "Stores and projects begin with the first thing that is written: `remember`, `import`, `connect`, `serve`, "
        "`mcp`, `worker`, `policy`, `sessions add`, and what else adds something. `keys add` may name a project that "
        "is new.",
        "## All commands",
        "Without a command, `heedful` shows six to start with.",
        _all_commands(),
    ]
    for name, command in cli.commands.items():
        parts += _command(f"heedful {name}", command, "##")
    return "\n\n".join(parts)


def _all_commands() -> str:
    """A line for each command, those below a group after it, by what they are for."""
    rows = [
        [title, f"[`{name}`](#heedful-{name.replace(' ', '-')})", text]
        for title, group in GROUPS.items()
        for each, ref in group.items()
        for name, text in [(each, ref.help), *_below(each)]
    ]
    return table(["to", "command", "what it does"], rows)


def _below(name: str) -> list[tuple[str, str]]:
    """The commands of a group, each with its sentence."""
    commands = getattr(cli.commands[name], "commands", {})
    return [
        (f"{name} {below}", inspect.cleandoc(each.help or "").partition("\n\n")[0]) for below, each in commands.items()
    ]


def _command(name: str, command: click.Command, heading: str) -> list[str]:
    if isinstance(command, click.Group):
        parts = [f"{heading} {name}", inspect.cleandoc(command.help or "")]
        for below, each in command.commands.items():
            parts += _command(f"{name} {below}", each, f"{heading}#")
        return parts
    arguments = [
        each.make_metavar(click.Context(command)) for each in command.params if isinstance(each, click.Argument)
    ]
    usage = " ".join([name, "[OPTIONS]", *arguments])
    return [
        f"{heading} {name}",
        f"```text\n{usage}\n```",
        inspect.cleandoc(command.help or ""),
        _options(command),
    ]


def _options(command: click.Command) -> str:
    rows = []
    for option in command.params:
        if isinstance(option, click.Option):
            rows.append([f"`{_spelling(option)}`", _shown_default(option), option.help or ""])
    return table(["option", "default", "meaning"], rows) if rows else "It has no options."


def _spelling(option: click.Option) -> str:
    names = ", ".join(option.opts) + (f" / {', '.join(option.secondary_opts)}" if option.secondary_opts else "")
    if option.is_flag:
        return names
    if isinstance(option.type, click.Choice):
        return f"{names} [{'/'.join(str(choice) for choice in option.type.choices)}]"
    return f"{names} {option.metavar or option.type.name.upper()}"


def _shown_default(option: click.Option) -> str:
    """The default as `--help` shows it: none for flags that are off and options that are left out."""
    if option.required or not option.show_default or option.default in (None, False, ()):
        return ""
    values = option.default if isinstance(option.default, tuple) else (option.default,)
    return ", ".join(f"`{option.opts[0] if option.is_flag else value}`" for value in values)


# Settings


def settings_page() -> str:
    """Every setting, where it can be given, and the limits that can't be set."""
    rows = []
    for name, field in settings.Settings.model_fields.items():
        value = field.get_default(call_default_factory=True)
        default = "none" if value in (None, (), []) else f"`{value}`"
        rows.append([f"`{name}`", f"`{settings.PREFIX}{name.upper()}`", default, SETTINGS[name]])
    most = [[meaning, f"{getattr(limits, name):,}"] for name, meaning in LIMITS.items()]
    return "\n\n".join(
        [
            "# Settings",
            NOTICE,
            "An argument of `open` (or an option of `heedful`) comes first, then the environment, then "
            f"`{settings.FILE}` in the current folder, then the default.",
            table([f"name in {settings.FILE}", "environment", "default", "meaning"], rows),
            "A name in the file that is not in this table is an error.",
            "A folder may be somebody else's, for instance a repository that you cloned. Settings in its "
            f"`{settings.FILE}` that say where data is sent, whom to trust or what is deleted therefore count only for "
            "a store that is a file in that folder. For any other store, and for `heedful mcp`, they are ignored, with "
            f"a warning: {listed(f'`{name}`' for name in sorted(settings.GUARDED))}, and `embedding` where it is an "
            f"address. If you trust the file, name it: `{settings.CONFIG}=/path/to/{settings.FILE}`.",
            f"`{KEY_VARIABLE}` is read from the environment alone, because a secret should not lie beside what it "
            "protects. It is the key that [connectors' URLs](../howto/secure-connectors.md#secrets) are encrypted "
            "with; of several, separated by commas, the first encrypts and all decrypt.",
            "So are these, among them the keys of [a server](../howto/serve.md#keys):",
            table(["environment", "who reads it", "meaning"], [list(each) for each in SERVER_SETTINGS]),
            "## Limits",
            "These are fixed. A call that goes over one is refused with `Invalid`, and nothing is done.",
            table(["what", "at most"], most),
            "What a query on a connector may take is set by the settings that begin with `query_`.",
        ]
    )


# Errors


def errors_page() -> str:
    """The tree of errors, and every code with what raises it."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].strip()
    found = codes()
    unexplained = sorted(set(found) ^ set(CODES))
    if unexplained:
        raise KeyError(f"docs/meanings.py and the code differ in the error codes {unexplained}: correct CODES")
    rows = [[f"`{code}`", listed(f"`{name}`" for name in sorted(found[code])), CODES[code]] for code in sorted(found)]
    return "\n\n".join(
        [
            "# Errors",
            NOTICE,
            "All that Heedful raises on purpose is a `HeedfulError`:",
            f"```text\n{tree}\n```",
            "Each has a `message` (what is wrong), a `code` (stable, for programs), and where it helps `field` and "
            "`value` (what was refused) and `remedy` (what to do). `str(error)` is the message and the remedy.",
            "A batch or a folder is not given up for one bad item: what was refused is listed in `errors` of the "
            "result, as `ItemError` or `FileError` with the same codes.",
            "[Troubleshooting](troubleshooting.md) says what to do about each.",
            table(["code", "in", "meaning"], rows),
        ]
    )


def codes() -> dict[str, set[str]]:
    """Every error code in the source, with the classes it appears in."""
    found: dict[str, set[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for code, owner in _codes_of(ast.parse(file.read_text(encoding="utf-8"))):
            found.setdefault(code, set()).add(owner)
    return found


def _codes_of(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from _codes_of_class(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            for keyword in node.keywords:
                if keyword.arg == "code":
                    yield from ((code, node.func.id) for code in _texts(keyword.value))
        elif isinstance(node, ast.FunctionDef):
            yield from _codes_of_argument(node)
        elif isinstance(node, ast.Assign) and _target(node) == "code" and isinstance(node.value, ast.IfExp):
            choices = [each for each in (node.value.body, node.value.orelse) if isinstance(each, ast.Constant)]
            yield from ((code, "FileError") for each in choices for code in _texts(each))
        elif isinstance(node, ast.Dict):
            # The table of SQLite's own codes: (our code, what is wrong, what to do).
            for value in node.values:
                if isinstance(value, ast.Tuple) and len(value.elts) == 3 and isinstance(value.elts[2], ast.Name):
                    yield from ((code, "Unavailable") for code in _texts(value.elts[0]))


def _codes_of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for line in node.body:
        if isinstance(line, ast.Assign) and _target(line) == "default_code":
            yield from ((code, node.name) for code in _texts(line.value))


def _codes_of_argument(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """The codes of a function that makes an error of the `code` it is passed: the default, and those it looks up."""
    arguments = function.args.args[len(function.args.args) - len(function.args.defaults) :]
    for argument, default in zip(arguments, function.args.defaults, strict=True):
        if argument.arg != "code":
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        owners = [
            node.func.id
            for node in calls
            if isinstance(node.func, ast.Name) and any(keyword.arg == "code" for keyword in node.keywords)
        ]
        keys = [
            key
            for node in calls
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Dict)
            for key in node.func.value.keys
            if key is not None
        ]
        yield from ((code, owner) for owner in owners for each in (default, *keys) for code in _texts(each))


def _target(line: ast.Assign) -> str | None:
    return line.targets[0].id if isinstance(line.targets[0], ast.Name) else None


def _texts(expression: ast.expr) -> list[str]:
    if isinstance(expression, ast.Call | ast.JoinedStr):
        # A code that is looked up or put together is named where it comes from.
        return []
    return [
        node.value for node in ast.walk(expression) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


# Common


def _is_model(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, BaseModel)


def _is_noun(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, model.Model) and each is not model.Model


def _is_error(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, errors.HeedfulError)


def _doc(documented: Any) -> str:
    return inspect.getdoc(documented) or ""


if __name__ == "__main__":
    main()
