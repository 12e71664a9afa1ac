"""The page about REST, from the table of operations."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from docs.markdown import NOTICE, listed, table
from heedful.api import NAMESPACES
from heedful.api.calls import HEADERS, Call, calls_of
from heedful.interfaces.http.calls import ETAG_OPERATIONS, PREFIX
from heedful.interfaces.http.openapi import ABOUT, description
from heedful.interfaces.problems import BY_CODE, BY_KIND, TITLES


def rest_page() -> str:
    """Every call over HTTP, from the table of operations."""
    parts = [
        "# REST",
        NOTICE,
        "What a server answers; [Call it over REST](../howto/call-over-rest.md) shows how. A server describes itself "
        f"at `/openapi.json`, with types and examples. Paths are below `{PREFIX}`. What stands in braces is a "
        "parameter; a slash inside one is written `%2F`.",
        "Names, defaults and results are those of the Python call in the last column. Parameters of GET and DELETE "
        "stand in the query string (a list by repeating its name, a mapping as JSON), those of other methods in a "
        "JSON object. A `?` marks what may be left out.",
        "The key is sent as `Authorization: Bearer …`, or as `X-API-Key`. The [scope](../howto/give-keys.md) is what "
        "it needs; `admin` has all.",
        "The project stands in the path. Where a [route of another system](#routes-of-other-systems) has no place for "
        "it, it is that of the key; a key that opens all projects names one in the header `X-Heedful-Project`, or "
        "gets the server's own. Feedback on such a route has the author that the header `X-Heedful-Author` or the "
        "setting `foreign_author` names. Otherwise it is a [visitor's](../concepts.md#authors) on the routes of cognee "
        "and mongodb_session_manager, and the program's on the others.",
        f"Every call but a GET takes the header `{HEADERS['idempotency_key']}`: sent again with the same, "
        "it is done once, and answered as the first time. ⇄ marks calls that send an `ETag`; those that list "
        f"`{HEADERS['if_match']}` take it back. ⋯ marks calls that stream events when `Accept` is `text/event-stream`.",
    ]
    for namespace, owner in NAMESPACES.items():
        rows = [_rest_row(call) for call in calls_of(owner).values() if call.method != "LOCAL"]
        parts += [f"## {namespace or 'memory'}", ABOUT[namespace]]
        parts.append(table(["method", "path", "scope", "parameters", "Python"], rows))
    parts += [
        "## The server itself",
        table(["method", "path", "key", "what"], [list(each) for each in _server_rows()]),
        "## Statuses",
        "An error is an `application/problem+json`: `type`, `title`, `status` and `detail`, and besides `code`, "
        "`field`, `value`, `remedy` and `request_id`. The [codes](errors.md) are those of Python.",
        table(["status", "title", "when"], [list(each) for each in _statuses()]),
        "## Routes of other systems",
        "The clients of other systems find their own routes here; what each does is in *Coming from* "
        "[Hindsight](../coming-from/hindsight.md#your-own-client-over-http), "
        "[text2everything_sdk](../coming-from/text2everything.md#your-own-client-over-http), "
        "[cognee](../coming-from/cognee.md#your-own-client-over-http) and "
        "[mongodb_session_manager](../coming-from/mongodb-session-manager.md#the-routes-of-a-web-application).",
    ]
    return "\n\n".join(parts)


def _rest_row(operation: Call) -> list[str]:
    given = [f"`{name}{'' if field.is_required() else '?'}`" for name, field in operation.request.model_fields.items()]
    given += [f"`{HEADERS[name]}`" for name in operation.headers if name == "if_match"]
    marks = (" ⇄" if operation.name in ETAG_OPERATIONS else "") + (" ⋯" if operation.callbacks else "")
    scope = f"`{operation.scope}`" + (f"; with `{operation.writes_with}`, `write`" if operation.writes_with else "")
    scope += " and `read`" if operation.also_reads else ""
    scope += " of the whole server" if operation.everywhere else ""
    scope += f"; `write` if making the `{operation.undoes}` takes that" if operation.undoes else ""
    page = {"": "python.md", "sessions": "sessions.md", "insight": "sessions.md", "review": "sessions.md"}.get(
        operation.namespace, "executions.md"
    )
    anchor = operation.name.replace(".", "")
    return [
        operation.method,
        f"`{operation.path}`{marks}",
        scope,
        ", ".join(given),
        f"[`{operation.name}`]({page}#{anchor})",
    ]


def _server_rows() -> Iterator[tuple[str, str, str, str]]:
    for path, verbs in orjson.loads(description())["paths"].items():
        if not path.startswith(PREFIX):
            yield "GET", f"`{path}`", "yes" if verbs["get"]["security"] else "no", verbs["get"]["summary"]
    yield "GET", "`/`", "no", "The name and the version of the server."
    yield "GET", "`/openapi.json`", "no", "The description of the API."
    yield "GET", "`/docs`", "no", "[Interactive pages about the API](../howto/serve.md#try-the-api-in-a-browser)."
    yield "GET", "`/widget.js`", "no", "[The element for web pages](../howto/widget.md)."
    yield "GET", "`/health`", "no", "What clients of other systems look for; as `/readyz`."


def _statuses() -> Iterator[tuple[str, str, str]]:
    kinds = {status: kind.__name__ for kind, status in BY_KIND.items()}
    for status, title in TITLES.items():
        named = [f"`{code}`" for code, given in BY_CODE.items() if given == status]
        if status in kinds:
            named.insert(0, f"`{kinds[status]}`")
        yield str(status), title, listed(named) if named else "`fault`"
