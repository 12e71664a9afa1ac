"""Writes docs/reference from the code: `python -m docs.generate`, or `make docs`."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import click
from pydantic import BaseModel

import heedful
from heedful import clock, errors, model, settings, simulate, testing
from heedful.cli.main import cli
from heedful.embedding import base
from heedful.memory import checks, remember

REFERENCE = Path(__file__).parent / "reference"
SOURCE = Path(heedful.__file__).parent
NOTICE = "<!-- Written by `make docs` from the code. Edits here are overwritten. -->"

# What a parameter means. A name means the same in every method; "method.name" is for the exceptions.
PARAMETERS = {
    "answer": "What was made of the facts that were shown.",
    "signal_recall.answer": "What the agent made of them: it tells what was used of the facts that are not named.",
    "author": "Whose opinion it is.",
    "by": "Instead of `text`: a fact that is there already.",
    "clock": "A function that returns the time; the system's clock if left out.",
    "confidence": "How sure the caller is, from 0 to 1; it scales every signal of the call.",
    "dataset": "The set of facts.",
    "embedding": "`bundled`, `fast`, a folder with an ONNX model, `URL#model`, or an embedder of your own.",
    "event_id": "The event to undo, as `signal`, `signal_recall` or `supersede` returned it.",
    "explain": "Add an `explanation` to every hit.",
    "fact_id": "The fact.",
    "fact_ids": "One fact or several.",
    "retract.author": "Who takes it back.",
    "supersede.author": "Who corrects it.",
    "exploration": "The chance that a fact nobody has judged for such a query gets the last place.",
    "forget.dataset": "The dataset of `source`; alone, the dataset that goes as a whole.",
    "forget.source": "All facts of this source.",
    "helpful": "Facts a person called helpful.",
    "idempotency_key": "The same call with the same key counts once, and returns the first result.",
    "metadata": "One mapping for all texts, or one for each.",
    "min_usefulness": "Leave out facts below this. Counts only with `boost_by_usefulness`.",
    "mode": "`hybrid` (meaning and words), `semantic` (meaning), `lexical` (words), or `graph` (hybrid and links).",
    "not_helpful": "Facts a person called not helpful.",
    "boost_by_usefulness": "Blend usefulness into the score.",
    "policy": "`documented` or `adaptive`; None leaves it to the dataset, then to the project.",
    "progress": "Called with (done, total) during long work.",
    "project": "The project; nothing crosses it.",
    "query": "The question, in any words.",
    "policies": "The policies to try; all of them if left out.",
    "recall_id": "The receipt, from `recall(…).recall_id`.",
    "repair": "Make anew what is derived and wrong.",
    "seed": "The seed of the draw for `exploration`.",
    "set_policy.dataset": "For this dataset alone; else for the whole project.",
    "set_policy.policy": "`documented` or `adaptive`; None takes the choice back.",
    "since": "Only recalls from this time on.",
    "replay.seed": "The seed of the resampling behind the intervals.",
    "weights": "The values of `usefulness_weight` to try; 0.1 to 0.9 if left out.",
    "signals": "`Signal` objects, or mappings with the same fields.",
    "source": "Where the texts come from. A file's source is its path.",
    "text": "What is true now.",
    "texts": "A `str` is a text. A `Path` is a file or a folder.",
    "top_k": "How many hits at most.",
    "url_or_path": "A file, `sqlite:///file.db`, or `:memory:`.",
    "used": "Facts the answer was made from.",
    "usefulness_weight": "The share of usefulness in the score, from 0 to 1.",
    "where": "Conditions on metadata; all must hold.",
}

# What a field means where the code says nothing. "Model.name" is for the exceptions.
FIELDS = {
    "added": "How many facts are new.",
    "arithmetic": "The way to the score, in lines for people.",
    "at": "When it was given.",
    "author": "Whose opinion it is.",
    "code": "A stable word for programs.",
    "confidence": "How sure the author is.",
    "context": "A note that is kept with the signal. It does not change the score.",
    "context_similarity": "How alike that query and the one asked are.",
    "contexts": "The usefulness in each context.",
    "dataset": "The set of facts.",
    "detail": "What was found.",
    "errors": "What was refused, one by one.",
    "event_id": "The event, for `retract`.",
    "event_ids": "The ledger's events, for `retract`. A signal that was given before has its first event here.",
    "events": "The signals behind the usefulness, in the order they fold.",
    "explanation": "The reasons, with `explain=True`.",
    "fact_id": "The fact.",
    "facts": "The facts, in order.",
    "ForgetResult.facts": "How many are gone.",
    "facts_with_signals": "How many facts anybody has spoken of.",
    "hits": "The facts found, best first. The object itself can be iterated and indexed, too.",
    "idempotency_key": "A signal with a key that was seen before counts once.",
    "index": "Its place in the call.",
    "known": "How many facts were there already.",
    "last_signal_at": "When the newest signal was given.",
    "least_useful": "The ten facts with the lowest scores.",
    "message": "What is wrong, for people.",
    "metadata": "The fact's metadata.",
    "mode": "How it was searched.",
    "most_useful": "The ten facts with the highest scores.",
    "name": "What was looked at.",
    "new": "Whether it was stored now.",
    "ok": "Whether it is right now.",
    "policy": "The rule it was ranked by.",
    "queries": "All queries of the context.",
    "query": "The question.",
    "rank": "The place, from 1.",
    "reasons": "Why, in words.",
    "recall_id": "The receipt's id, for `signal_recall`.",
    "relevance": "How well the fact answers by meaning and words, in [0, 1].",
    "removed": "How many facts a changed file no longer says.",
    "repaired": "Whether it was wrong and was made anew.",
    "retracted": "The event that no longer counts.",
    "score": "What the rank is by.",
    "ContextScore.score": "The usefulness in this context, decayed to now.",
    "FactStats.score": "The usefulness over all queries, decayed to now.",
    "RankedFact.score": "The usefulness over all queries, decayed to now.",
    "shown": "The facts, in the order they were shown.",
    "signal_breakdown": "How many signals of each type.",
    "signal_count": "How many signals count.",
    "signal_type": "What is said of the fact.",
    "source": "Where the text comes from.",
    "superseded_by": "The fact that is recalled in its place.",
    "text": "The fact's text.",
    "total_facts": "How many facts there are.",
    "total_signals": "How many signals count.",
    "updated_facts": "The facts whose scores were folded anew.",
    "SignalResult.updated_facts": "The facts that have new scores.",
    "usefulness": "What signals say of the fact for this query, in [0, 1]; 0.5 is neutral.",
    "usefulness_source": "Whether that is from this context, from all queries, or from nobody.",
}

SETTINGS = {
    "store": "The file, or its URL.",
    "project": "The project.",
    "embedding": "`bundled`, `fast`, a folder with an ONNX model, or `URL#model`.",
    "embedding_api_key": "Sent to the endpoint of `URL#model` as a bearer token.",
    "embedding_timeout": "Seconds to wait for one answer of that endpoint.",
    "language_model": "`URL#model`: the model that writes answers, at any OpenAI-compatible endpoint.",
    "language_model_api_key": "Sent to that endpoint as a bearer token.",
    "language_model_timeout": "Seconds to wait for its first token, and for each next one.",
}

LIMITS = {
    "MAX_TEXT": "characters of one text",
    "MAX_QUERY": "characters of a query",
    "MAX_NAME": "characters of the name of a project or dataset, and of an idempotency key",
    "MAX_TOP_K": "`top_k`",
    "MAX_SIGNALS": "signals in one call",
    "MAX_METADATA": "bytes of one fact's metadata, as JSON",
}

CODES = {
    "conflict": "The request contradicts what is stored.",
    "disk_full": "The disk has no room left. Nothing was changed.",
    "error": "No error carries it; every error has a code of its own.",
    "extra_missing": "The feature needs a package that is not installed; the message says which.",
    "forbidden": "The caller may not do this. Not raised in this version.",
    "idempotency_key_reused": "The key was used before, for a call with other arguments.",
    "invalid": "A value can't be accepted; `field` and `value` name it. Nothing was changed.",
    "model_changed": "A file of the bundled model is not the one this version was tested with.",
    "model_missing": "The model's files, or the package that carries them, are not there.",
    "model_unreachable": "The endpoint of a model does not answer, or answers with something else.",
    "model_unusable": "A file of the ONNX model is broken, or does not say how wide its vectors are.",
    "not_found": "The fact, recall, event, dataset or source is not there, or is another project's.",
    "other_model": "The store's vectors were made by another model. Open it with that one, or reembed.",
    "store_busy": "Another process kept the store locked for too long.",
    "store_closed": "The store was closed before this call.",
    "store_damaged": "The file is not a store, or is damaged.",
    "store_foreign": "The file is a database of another program.",
    "store_io": "The file can't be read or written.",
    "store_newer": "The store was made by a newer version of Heedful.",
    "store_read_only": "The file or its folder can't be opened, created or written.",
    "unavailable": "Something the call needs can't be used right now.",
    "undecodable": "The file is binary, damaged, or not UTF-8.",
    "unreadable": "The file is not there, or may not be read.",
    "unsupported": "Heedful does not read this kind of file.",
}


def pages() -> dict[str, str]:
    """Every generated page, by the name of its file."""
    made = {
        "python.md": python_page(),
        "cli.md": cli_page(),
        "settings.md": settings_page(),
        "errors.md": errors_page(),
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


# Python


def python_page() -> str:
    """The public names of `heedful`, the models its methods return, and the doubles for tests."""
    parts = [
        "# Python",
        NOTICE,
        "Every public name of `heedful`, what its methods return, and the doubles in `heedful.testing` and "
        "`heedful.simulate`.",
        "## Opening a store",
        *(_function(getattr(heedful, name), f"heedful.{name}") for name in ("open", "aopen", "reembed")),
        "## heedful.Heedful",
        _doc(heedful.Heedful),
        *(_function(method, name) for name, method in methods(heedful.Heedful)),
        "## heedful.AsyncHeedful",
        _doc(heedful.AsyncHeedful),
        "It has " + _listed(f"`{name}`" for name, _ in methods(heedful.AsyncHeedful)) + ".",
        "## Models",
        "All are frozen pydantic models: `model_dump()` and `model_dump_json()` work on each. "
        + _listed(f"`heedful.{name}`" for name in heedful.__all__ if _is_model(getattr(heedful, name)))
        + " are public by that name; the others are in `heedful.model`.",
        *(_model(each) for each in _models()),
        "## Types",
        _types(),
        "## Errors",
        _bullets(
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


def methods(owner: type) -> list[tuple[str, Callable[..., Any]]]:
    """The public methods of a class, in the order they are written."""
    return [(name, member) for name, member in vars(owner).items() if callable(member) and not name.startswith("_")]


def _function(function: Callable[..., Any], name: str) -> str:
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    parts = [f"### {name}", f"```text\n{_signature(function, name, parameters)}\n```", _doc(function)]
    if parameters:
        method = name.rpartition(".")[2]
        rows = [
            [f"`{each.name}`", f"`{_annotation(each.annotation)}`", _default(each), _meaning(method, each.name)]
            for each in parameters
        ]
        parts.append(_table(["parameter", "type", "default", "meaning"], rows))
    return "\n\n".join(parts)


def _signature(function: Callable[..., Any], name: str, parameters: list[inspect.Parameter]) -> str:
    shown: list[str] = []
    keyword_only = False
    for each in parameters:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            shown.append("*")
        default = "" if each.default is inspect.Parameter.empty else f"={each.default!r}"
        shown.append(each.name + default)
    prefix = "await " if inspect.iscoroutinefunction(function) else ""
    returned = _annotation(inspect.signature(function).return_annotation)
    line = f"{prefix}{name}({', '.join(shown)}) -> {returned}"
    if len(line) <= 100:
        return line
    wrapped = textwrap.fill(", ".join(shown), 96, break_long_words=False, break_on_hyphens=False)
    return f"{prefix}{name}(\n{textwrap.indent(wrapped, '    ')}\n) -> {returned}"


def _meaning(method: str, parameter: str) -> str:
    found = PARAMETERS.get(f"{method}.{parameter}") or PARAMETERS.get(parameter)
    if found is None:
        raise KeyError(f"docs/generate.py says nothing of the parameter {parameter} of {method}: add it to PARAMETERS")
    return found


def _default(parameter: inspect.Parameter) -> str:
    return "required" if parameter.default is inspect.Parameter.empty else f"`{parameter.default!r}`"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _models() -> list[type[BaseModel]]:
    """The models that can be met through public names, in the order they are written."""
    known = {name: each for name, each in vars(model).items() if _is_model(each) and each is not model.Model}
    functions: list[Callable[..., Any]] = [
        *(member for _, member in methods(heedful.Heedful)),
        heedful.open,
        heedful.reembed,
    ]
    waiting = [*heedful.__all__, *(_annotation(inspect.signature(each).return_annotation) for each in functions)]
    met: set[str] = set()
    while waiting:
        for name in re.findall(r"\w+", waiting.pop()):
            if name in known and name not in met:
                met.add(name)
                waiting += known[name].__annotations__.values()
    return [each for name, each in known.items() if name in met]


def _model(each: type[BaseModel]) -> str:
    rows = []
    for name, field in each.model_fields.items():
        default = "" if field.is_required() else f"`{field.default!r}`"
        rows.append([f"`{name}`", f"`{each.__annotations__[name]}`", default, _field_meaning(each.__name__, name)])
    for name, member in vars(each).items():
        if isinstance(member, property) and member.fget is not None:
            returned = _annotation(inspect.signature(member.fget).return_annotation)
            rows.append([f"`{name}`", f"`{returned}`", "", _doc(member)])
    return "\n\n".join([f"### {each.__name__}", _doc(each), _table(["field", "type", "default", "meaning"], rows)])


def _field_meaning(owner: str, name: str) -> str:
    written = _attribute_docs(model).get(f"{owner}.{name}")
    found = written or FIELDS.get(f"{owner}.{name}") or FIELDS.get(name)
    if found is None:
        raise KeyError(f"nothing is said of {owner}.{name}: write it below the field, or in FIELDS of docs/generate.py")
    return found


def _types() -> str:
    rows = [
        ["`Mode`", "one of " + _listed(f"`{each}`" for each in get_args(model.Mode))],
        ["`SignalType`", "one of " + _listed(f"`{each}`" for each in get_args(model.SignalType))],
        ["`UsefulnessSource`", "one of " + _listed(f"`{each}`" for each in get_args(model.UsefulnessSource))],
        ["`PolicyName`", "one of " + _listed(f"`{each}`" for each in get_args(model.PolicyName))],
        ["`Metadata`", "a mapping from text to what JSON can hold"],
        ["`NotBlank`", "a text with at least one visible character"],
        ["`Fraction`", "a number in [0, 1]"],
        ["`Clock`", f"`{_alias(clock.Clock)}`: returns the time"],
        ["`Progress`", f"`{_alias(remember.Progress)}`: {_attribute_docs(remember)['Progress']}"],
        ["`Embedder`", f"{_doc(base.Embedder)} It has {_listed(_embedder_members())}."],
    ]
    return _table(["name", "meaning"], rows)


def _embedder_members() -> Iterator[str]:
    return (f"`{name}`" for name in vars(base.Embedder) if not name.startswith("_"))


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
    parts = [f"### {module.__name__}.{name}", f"```text\n{name}{called}\n```", _doc(double), _bullets(shown)]
    return "\n\n".join(part for part in parts if part)


def _arguments(function: Callable[..., Any]) -> str:
    parameters = [str(each) for each in inspect.signature(function).parameters.values() if each.name != "self"]
    return f"({', '.join(parameters)})".replace("'", "")


# Command line


def cli_page() -> str:
    """Every command, with its arguments and options."""
    parts = [
        "# Command line",
        NOTICE,
        "`heedful [OPTIONS] COMMAND …`. What stands before the command holds for all of them:",
        _options(cli),
        "Results go to standard output; errors and progress go to standard error. The exit code is 0 when all was "
        "done, 1 when something was refused or found wrong (the rest was done), and 2 when nothing was done.",
    ]
    for name, command in cli.commands.items():
        arguments = [
            each.make_metavar(click.Context(command)) for each in command.params if isinstance(each, click.Argument)
        ]
        usage = " ".join([f"heedful {name}", "[OPTIONS]", *arguments])
        parts += [
            f"## heedful {name}",
            f"```text\n{usage}\n```",
            inspect.cleandoc(command.help or ""),
            _options(command),
        ]
    return "\n\n".join(parts)


def _options(command: click.Command) -> str:
    rows = []
    for option in command.params:
        if isinstance(option, click.Option):
            default = f"`{_shown_default(option)}`" if option.show_default else ""
            rows.append([f"`{_spelling(option)}`", default, option.help or ""])
    return _table(["option", "default", "meaning"], rows) if rows else "It has no options."


def _spelling(option: click.Option) -> str:
    names = ", ".join(option.opts) + (f" / {', '.join(option.secondary_opts)}" if option.secondary_opts else "")
    if option.is_flag:
        return names
    if isinstance(option.type, click.Choice):
        return f"{names} [{'/'.join(str(choice) for choice in option.type.choices)}]"
    return f"{names} {option.metavar or option.type.name.upper()}"


def _shown_default(option: click.Option) -> str:
    if option.is_flag and option.secondary_opts:
        return (option.opts if option.default else option.secondary_opts)[0]
    return str(option.default)


# Settings


def settings_page() -> str:
    """Every setting, where it can be given, and the limits that can't be set."""
    rows = []
    for name, field in settings.Settings.model_fields.items():
        default = "none" if field.default is None else f"`{field.default}`"
        rows.append([f"`{name}`", f"`{settings.PREFIX}{name.upper()}`", default, SETTINGS[name]])
    limits = [[meaning, f"{getattr(checks, name):,}"] for name, meaning in LIMITS.items()]
    return "\n\n".join(
        [
            "# Settings",
            NOTICE,
            "An argument of `open` (or an option of `heedful`) comes first, then the environment, then "
            f"`{settings.FILE}` in the current folder, then the default.",
            _table([f"name in {settings.FILE}", "environment", "default", "meaning"], rows),
            "A name in the file that is not in this table is an error.",
            "## Limits",
            "These are fixed. A call that goes over one is refused with `Invalid`, and nothing is done.",
            _table(["what", "at most"], limits),
        ]
    )


# Errors


def errors_page() -> str:
    """The tree of errors, and every code with what raises it."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].strip()
    found = codes()
    unexplained = sorted(set(found) ^ set(CODES))
    if unexplained:
        raise KeyError(f"docs/generate.py and the code differ in the error codes {unexplained}: correct CODES")
    rows = [[f"`{code}`", _listed(f"`{name}`" for name in sorted(found[code])), CODES[code]] for code in sorted(found)]
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
            _table(["code", "in", "meaning"], rows),
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
            for line in node.body:
                if isinstance(line, ast.Assign) and _target(line) == "default_code":
                    yield from ((code, node.name) for code in _texts(line.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            for keyword in node.keywords:
                if keyword.arg == "code":
                    yield from ((code, node.func.id) for code in _texts(keyword.value))
        elif isinstance(node, ast.Assign) and _target(node) == "code" and isinstance(node.value, ast.IfExp):
            yield from ((code, "FileError") for code in _texts(node.value))
        elif isinstance(node, ast.Dict):
            # The table of SQLite's own codes: (our code, what is wrong, what to do).
            for value in node.values:
                if isinstance(value, ast.Tuple) and len(value.elts) == 3 and isinstance(value.elts[2], ast.Name):
                    yield from ((code, "Unavailable") for code in _texts(value.elts[0]))


def _target(line: ast.Assign) -> str | None:
    return line.targets[0].id if isinstance(line.targets[0], ast.Name) else None


def _texts(expression: ast.expr) -> list[str]:
    return [
        node.value for node in ast.walk(expression) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


# Common


def _is_model(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, BaseModel)


def _is_error(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, errors.HeedfulError)


def _doc(documented: Any) -> str:
    return inspect.getdoc(documented) or ""


@cache
def _attribute_docs(module: ModuleType) -> dict[str, str]:
    """The texts that stand below names, as "NAME" or "Class.name"."""
    found: dict[str, str] = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for line, below in zip(body, [*body[1:], None], strict=True):
            if isinstance(line, ast.ClassDef):
                walk(line.body, f"{line.name}.")
            named = (
                line.target
                if isinstance(line, ast.AnnAssign)
                else line.targets[0]
                if isinstance(line, ast.Assign)
                else None
            )
            if isinstance(named, ast.Name) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                found[prefix + named.id] = inspect.cleandoc(str(below.value.value))

    walk(ast.parse(inspect.getsource(module)).body, "")
    return found


def _listed(items: Iterator[str] | list[str]) -> str:
    found = list(items)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def _bullets(items: Iterator[str] | list[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


if __name__ == "__main__":
    main()
