"""What the client can ask for and Heedful doesn't have: each answers that, and why."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

from heedful.engine import Heedful
from heedful.errors import NotFound
from heedful.interfaces.problems import ForeignRequest, Wire

CUSTOM_TOOLS = "custom tools: they are programs of another server"
AGENTS = "agents: a question is answered by proven SQL, or by SQL that the language model writes"
AUTOMATIC = "automatic feedback: only what people say proves SQL"
PRESETS = "chat presets and prompt templates: they configure another server's chat"
COLLECTIONS = "collections: they are another server's; texts are facts in the datasets contexts and schema_metadata"
SPLITS = "split groups: a schema text is kept whole"
PROJECTS = "the deletion of a whole project: delete what is in it, or its store"

_PROJECT = "/api/projects/{project_id}"
_TOOLS = f"{_PROJECT}/custom-tools"
_PRESETS = f"{_PROJECT}/chat-presets"

_ABSENT = (
    (CUSTOM_TOOLS, _TOOLS, "GET POST"),
    (CUSTOM_TOOLS, f"{_TOOLS}/{{tool_id}}", "GET PUT DELETE"),
    (CUSTOM_TOOLS, f"{_PROJECT}/chat-sessions/{{chat_session_id}}/custom-tool", "PUT"),
    (PRESETS, _PRESETS, "GET POST"),
    (PRESETS, f"{_PRESETS}/options", "GET"),
    (PRESETS, f"{_PRESETS}/prompt-templates", "GET POST"),
    (PRESETS, f"{_PRESETS}/prompt-templates/{{template_id}}", "GET PUT"),
    (PRESETS, f"{_PRESETS}/active/start", "POST"),
    (PRESETS, f"{_PRESETS}/{{preset_id}}", "GET PUT DELETE"),
    (PRESETS, f"{_PRESETS}/{{preset_id}}/activate", "POST"),
    (PRESETS, f"{_PRESETS}/{{preset_id}}/chat-sessions", "POST"),
    (COLLECTIONS, f"{_PROJECT}/collections", "GET"),
    (COLLECTIONS, f"{_PROJECT}/collections/{{component_type}}", "GET"),
    (SPLITS, f"{_PROJECT}/schema-metadata/split-group/{{split_group_id}}", "GET"),
    (PROJECTS, _PROJECT, "DELETE"),
)


def missing(what: str) -> NotFound:
    """The error for something that Heedful doesn't have; `what` says why after a colon."""
    name, _, reason = what.partition(": ")
    return NotFound(f"not part of Heedful: {name} ({reason})", code="not_part_of_heedful")


def _refuse(what: str, heedful: Heedful, request: ForeignRequest) -> NoReturn:
    raise missing(what)


ROUTES = tuple(
    Wire(method, path, partial(_refuse, what), "read", "project_id")
    for what, path, methods in _ABSENT
    for method in methods.split()
)
