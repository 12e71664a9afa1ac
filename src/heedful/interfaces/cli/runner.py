"""Commands from declared calls: options from the parameters, the store that is opened, and the result shown or as JSON.

A command keeps only what is particular to it: its name, the parameters that are arguments, the options that are spelled
differently, what it asks before, and how its result is shown.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click
import orjson

import heedful
from heedful import settings
from heedful.api import ALL_CALLS
from heedful.api.calls import CALLBACKS
from heedful.bootstrap import remove_empty_store, store_file, store_projects
from heedful.engine import Heedful
from heedful.errors import HeedfulError, Invalid, NotFound, extra_missing, no_project, quoted
from heedful.interfaces.cli.command_table import COMMANDS
from heedful.interfaces.cli.screen import echo, print_json, show_result, waiting
from heedful.interfaces.client.surface import RemoteHeedful
from heedful.model import Metadata
from heedful.store import Store, session_projects

Engine = Heedful | RemoteHeedful
Function = Callable[..., Any]
Decorator = Callable[[Function], Function]
Change = Mapping[str, Any] | str | None
"""Attributes of an option in place of those that its declaration gives it, or its help; with None, there is none."""
Show = Callable[..., str | None]
"""Prints a result, or returns the text that is printed."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that hold for every command."""

    store: str | None
    project: str | None
    embedding: str | None
    language_model: str | None
    sessions: str | None
    wide: bool = False

    @property
    def providers(self) -> dict[str, Any]:
        """The options of a store that a server has chosen for itself."""
        return {name: getattr(self, name) for name in ("embedding", "language_model", "sessions")}

    def open(self, *, worker: bool = True) -> Engine:
        """The store, or the server that has it; without a `worker`, jobs are left to others."""
        address = self.remote()
        if address is not None:
            return heedful.connect(address, project=self.project)
        return heedful.open(self.store, project=self.project, worker=worker, **self.providers)

    def remote(self) -> str | None:
        """The address of the server that is to be opened, if one is; it takes no options of a store."""
        address = self.server
        for name, value in self.providers.items():
            if address is not None and value is not None:
                option = f"--{name.replace('_', '-')}"
                problem = f"{option} can't be combined with a server, which has its own"
                remedy = f"Leave it out, or start the server with it: heedful {option} … serve"
                raise Invalid(problem, field=name, value=value, remedy=remedy)
        return address

    def local(self, command: str) -> str | None:
        """The store, for a command that needs its file."""
        address = self.server
        if address is not None:
            problem = f"heedful {command} works on a store, and {address} is a server"
            remedy = "Run it where the store is, with --store FILE"
            raise Invalid(problem, field="store", value=address, remedy=remedy)
        return self.store

    def whole(self, command: str) -> AbstractContextManager[Store]:
        """The store with all its projects, for a command that needs its file."""
        return closing(Store(self.local(command), **self.providers))

    @property
    def whole_store(self) -> bool:
        """Whether a store is named, and none of its projects."""
        return self.project is None and self.server is None

    @property
    def named_project(self) -> str | None:
        """The project that somebody named, here or in the settings; their default is nobody's choice."""
        config = settings.load()
        return self.project or (config.project if "project" in config.model_fields_set else None)

    @property
    def server(self) -> str | None:
        """The address of the server that is named as the store, if one is."""
        store = self.store or settings.load().store
        if not store.lower().startswith(("http://", "https://")):
            return None
        if self.store is None:
            settings.check_server_key()
        return store


@contextmanager
def _leaving_no_empty_store(options: Options) -> Iterator[None]:
    """Inside, what fails removes a store that it made, unless something was written to it or somebody else has it."""
    file = None if options.server else store_file(options.store or settings.load().store)
    is_new = file is not None and not file.exists()
    try:
        yield
    except HeedfulError:
        if is_new and file is not None and file.exists():
            remove_empty_store(file)
        raise


Needs = Literal["project", "store", "any project"] | None
"""The things that must be there before a command begins: the project and its store; or the store, and a project only if
somebody names one; or the store, for a project that may be new. A store that has no project yet is there for the
project that nobody named."""


def command(
    needs: Needs = "project", *, name: str | None = None, group: click.Group | None = None, as_json: bool = True
) -> Callable[[Function], click.Command]:
    """Makes a command of a function that gets the options that hold for every command, and those added to it.

    Its docstring is the help; that of a command without a group is what follows its sentence in COMMANDS.
    """

    def decorate(function: Function) -> click.Command:
        @click.pass_obj
        def run(options: Options, *args: Any, **kwargs: Any) -> Any:
            with _leaving_no_empty_store(options):
                if needs is not None and options.server is None:
                    named = None if needs == "any project" else options.named_project
                    _check(options, named or settings.load().project if needs == "project" else named)
                return function(options, *args, **kwargs)

        # Click adds the parameters of a function from the last one to the first.
        parameters: list[click.Parameter] = vars(function).pop("__click_params__", [])
        last = [click.Option(["--json", "as_json"], is_flag=True, help="Print JSON instead of a table.")]
        params = [*reversed(parameters), *(last if as_json else ())]
        named = name or function.__name__.replace("_", "-")
        help = inspect.getdoc(function) or ""
        if group is None and not help.startswith(COMMANDS[named].help):
            help = f"{COMMANDS[named].help}\n\n{help}".rstrip()
        made = click.Command(named, callback=run, params=params, help=help)
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def _check(options: Options, project: str | None) -> None:
    """Fails if the store is not there, or a project that was named."""
    config = settings.load(store=options.store)
    store, sessions = options.store or config.store, options.sessions or config.sessions
    try:
        projects = store_projects(store)
    except NotFound as error:
        # Whoever has sessions in MongoDB may have no facts yet.
        if project is None or project not in session_projects(sessions):
            raise _missing(error) from None
        echo(f"note: {error.message}; it is created now, for the sessions of project {project}", err=True)
        return
    if project is None or project in projects or (not projects and options.named_project is None):
        return
    projects += session_projects(sessions)
    if project not in projects:
        raise no_project(project, projects, "heedful --project NAME …")


def _missing(error: NotFound) -> NotFound:
    """The error with what the store may be called instead."""
    file = Path(str(error.value))
    stores = {path.stem: str(path) for path in sorted(file.parent.glob("*.db")) if path != file}
    near = [stores[name] for name in get_close_matches(file.stem, stores)]
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    remedy = f"{hint}Check --store, HEEDFUL_STORE and the folder you are in; heedful remember makes a new store"
    return NotFound(error.message, code=error.code, field="store", value=error.value, remedy=remedy)


yes: Decorator = click.option("-y", "--yes", is_flag=True, help="Don't ask.")
force: Decorator = click.option("--force", is_flag=True, help="Replace an existing file.")


@contextmanager
def extra(name: str, feature: str) -> Iterator[None]:
    """Inside, what is imported comes with an extra; without it, an error says how to get it."""
    try:
        yield
    except ImportError as error:
        raise extra_missing(name, f"{feature} needs an extra ({error.name} is missing)") from error


def pairs(field: str, items: Sequence[str]) -> Metadata | None:
    """KEY=VALUE options as a mapping; a value that reads as JSON is that, any other is text."""
    result: Metadata = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise Invalid(f"{field} is {quoted(item)}", field=field, value=item, remedy="Write it as KEY=VALUE")
        try:
            result[key] = orjson.loads(value)
        except orjson.JSONDecodeError:
            result[key] = value
    return result or None


def read_dash(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """A text, or, for a single -, what standard input has."""
    return sys.stdin.read() if value == "-" else value


STDIN = {"callback": read_dash}
"""Of a parameter whose text may come from standard input."""

_SHORT = {"connector_id": "-c", "dataset": "-d", "limit": "-n", "metadata": "-m", "top_k": "-k", "where": "-w"}
"""Options that also have a letter."""

_WITHOUT_ID = ("chat_message_id", "chat_session_id", "connector_id", "execution_id", "recall_id")
"""Options that may be written without the "-id" at their end."""

_METAVARS = {
    "connector_id": "NAME",
    "idempotency_key": "KEY",
    "if_match": "ETAG",
    "sql_query": "SQL",
    "by": "KEY",
    **dict.fromkeys(("assignee", "audience", "author", "dataset", "role", "source"), "NAME"),
}


def parameters(call: str, *arguments: str, **changes: Change) -> Decorator:
    """Adds the parameters of a declared call to a command; those named in `arguments` are positional."""

    def add(function: Function) -> Function:
        made = _click_parameters(call, arguments, changes)
        vars(function).setdefault("__click_params__", []).extend(reversed(made))
        return function

    return add


def _click_parameters(
    call: str, arguments: Sequence[str], changes: Mapping[str, Change], only: Sequence[str] = ()
) -> list[click.Parameter]:
    types, declared = ALL_CALLS[call].types, ALL_CALLS[call].signature.parameters
    offered = only or [name for name in declared if name not in CALLBACKS]
    made: list[click.Parameter] = []
    for name in [*arguments, *(name for name in offered if name not in arguments)]:
        change = changes.get(name, {})
        if change is None:
            continue
        default = declared[name].default
        attributes = {**_typed(types[name]), **({"help": change} if isinstance(change, str) else change)}
        if name in arguments:
            attributes.pop("is_flag", None)
            if attributes.pop("multiple", False):
                attributes["nargs"] = -1
            made.append(click.Argument([name], **{"required": default is inspect.Parameter.empty, **attributes}))
            continue
        if "help" not in attributes:
            # The meaning of a parameter, as all interfaces say it.
            meaning = str(ALL_CALLS[call].meanings[name].meaning).replace("`", "")
            repeated = f"{meaning.rstrip('.')}; may be repeated."
            attributes["help"] = repeated if attributes.get("multiple") else meaning
        made.append(_option(name, default, attributes))
    return made


def _option(name: str, default: Any, attributes: dict[str, Any]) -> click.Option:
    flag = f"--{name.replace('_', '-')}"
    if attributes.get("multiple"):
        flag = flag.removesuffix("ies") + "y" if flag.endswith("ies") else flag.removesuffix("s")
    if attributes.get("is_flag") and default is not False:
        del attributes["is_flag"]
        flag = f"{flag}/--no{flag[1:]}"
    shorter = [_SHORT[name]] if name in _SHORT else []
    shorter += [flag.removesuffix("-id")] if name in _WITHOUT_ID else []
    spelled = attributes.pop("spelled", None) or [*shorter, flag]
    metavar = _METAVARS.get(name) or ("ID" if name.endswith(("_id", "_ids")) else None)
    if attributes.get("multiple") and default is None:
        attributes.setdefault("callback", lambda context, parameter, values: values or None)
    if not attributes.setdefault("required", default is inspect.Parameter.empty):
        # A default that has no type of its own means that nothing is given.
        attributes.setdefault("default", default if isinstance(default, str | int | float | tuple) else None)
    attributes = {"metavar": metavar, "show_default": True, **attributes}
    return click.Option([*spelled, name], **attributes)


def _typed(annotation: Any) -> dict[str, Any]:
    """The attributes of an option whose values have this type."""
    is_union = get_origin(annotation) in (Union, UnionType)
    members = [member for member in get_args(annotation) if member is not NoneType] if is_union else [annotation]
    sequences = [get_args(member)[0] for member in members if get_origin(member) is Sequence]
    if sequences and get_origin(sequences[0]) is not dict:
        return {"multiple": True, **_typed(sequences[0])}
    kind = get_origin(members[0]) or members[0]
    if kind in (dict, Mapping):
        return {
            "multiple": True,
            "metavar": "KEY=VALUE",
            "callback": lambda context, parameter, items: pairs(parameter.name, items),
        }
    if kind is Literal:
        return {"type": click.Choice(get_args(members[0]))}
    if kind is datetime:
        return {"type": click.DateTime()}
    if kind is bool:
        return {"is_flag": True}
    return {"type": kind} if kind in (int, float) else {}


def runs(
    call: str,
    *arguments: str,
    group: click.Group | None = None,
    name: str | None = None,
    needs: Needs = "project",
    asks: str | Callable[..., str | None] | None = None,
    waits: str | None = None,
    worker: bool = True,
    opens: Callable[[Options, Mapping[str, Any]], AbstractContextManager[Any]] | None = None,
    does: Callable[..., Any] | None = None,
    only: Sequence[str] = (),
    help: str | None = None,
    **changes: Change,
) -> Callable[[Show], click.Command]:
    """Makes a command of a declared call; the function below it shows the result, and its docstring is the help, unless
    `help` is given.

    That function gets the result, and by name what was typed. It prints, or returns what is to be printed; of a call
    that returns a bool, the first line is printed as JSON, too. Its own click options are added to those of the call.

    `asks` is a question that is asked before, or a function that is given what was opened and typed, and returns it;
    `waits` is a title while the call runs. `opens` opens something else than the
    store; `does` is called with what was opened in place of the call. With `only`, no other parameters are options.
    """

    def decorate(show: Show) -> click.Command:
        made = _click_parameters(call, arguments, changes, only)
        own: list[click.Parameter] = getattr(show, "__click_params__", [])
        declared = {parameter.name for parameter in made}
        required = [name for name, parameter in zip(arguments, made, strict=False) if parameter.required]
        shown = list(inspect.signature(show).parameters)[1:]

        def run(options: Options, /, as_json: bool, yes: bool = True, **typed: Any) -> None:
            # The engine has the defaults of what was not typed.
            sent = {name: value for name, value in typed.items() if value is not None and value != ()}
            with options.open(worker=worker) if opens is None else opens(options, typed) as engine:
                if asks and not yes:
                    if look := ALL_CALLS.get(f"{call.rpartition('.')[0]}.get"):
                        # An unknown id is an error before it is a question.
                        attrgetter(look.name)(engine)(**{name: typed[name] for name in look.signature.parameters})
                    question = asks(engine, **typed) if callable(asks) else asks.format(**typed)
                    if question:
                        click.confirm(question, abort=True, err=True)
                with waiting(waits) if waits else nullcontext():
                    if does is not None:
                        result = does(engine, **sent)
                    else:
                        result = attrgetter(call)(engine)(**{name: sent[name] for name in sent if name in declared})
            shows = partial(show, **{name: typed[name] for name in shown})
            if as_json and isinstance(result, bool):
                text = shows(result) or ""
                print_json({"done": text.partition("\n")[0], "id": typed[required[-1]]})
            else:
                show_result(result, as_json, shows)

        if asks:
            yes(run)
        added = vars(run).setdefault("__click_params__", [])
        vars(run)["__click_params__"] = [*added, *own, *reversed(made)]
        run.__name__, run.__doc__ = name or show.__name__, help or show.__doc__
        return command(needs, group=group)(run)

    return decorate


class Group(click.Group):
    """Commands about the calls of a namespace, which has the name of the group unless it is given.

    The commands `first` come first in the reference; `defaults` are options of `runs` that all of them have.
    """

    def __init__(self, name: str, namespace: str | None = None, first: str = "", **defaults: Any) -> None:
        # These are only places, each taken when its command is added.
        places: dict[str, click.Command] = {place: click.Command(place) for place in first.split()}
        super().__init__(name, help=COMMANDS[name].help, commands=places)
        self._namespace = namespace or name
        self._defaults = defaults

    def runs(self, verb: str, *arguments: str, **options: Any) -> Callable[[Show], Show]:
        """Makes a command of a call of the namespace, as `runs` does; a function may show the results of several."""
        options = {"name": verb.replace("_", "-"), **self._defaults, **options}
        decorate = runs(f"{self._namespace}.{verb}", *arguments, group=self, **options)

        def add(show: Show) -> Show:
            decorate(show)
            return show

        return add
