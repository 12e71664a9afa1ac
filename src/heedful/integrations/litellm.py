"""LiteLLM: a callback of its proxy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from litellm.caching.dual_cache import DualCache
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth

from heedful.integrations.proxy.conversations import REMEMBERED, Conversations
from heedful.integrations.proxy.protocols import PROTOCOLS, Protocol, Reply
from heedful.integrations.turns import BlockingMemory, Runs

_PROTOCOLS: Mapping[str, tuple[Protocol, tuple[str, ...]]] = {
    "acompletion": (PROTOCOLS["/chat/completions"], ("messages",)),
    "aresponses": (PROTOCOLS["/responses"], ("input", "instructions")),
}
"""By the call of LiteLLM's: how it is read, and what memories change."""

NOBODY = "default_user_id"
"""The user of LiteLLM's master key."""


def user_of(key: UserAPIKeyAuth, data: Mapping[str, Any]) -> str | None:
    """Whose memories a request gets: those of the key's user, who can't choose to be another; else of whom the request
    names, in the header `X-Heedful-User` or in the field `user`."""
    if key.user_id and key.user_id != NOBODY:
        return str(key.user_id)
    return _headers(data).get("x-heedful-user") or data.get("user") or None


class HeedfulCallback(CustomLogger):
    """Recalls before LiteLLM's proxy asks a model, and stores the answer: that of a chat completion under its id, that
    of the Responses API under LiteLLM's id of the call, because ids of responses are not the same for all who see them.

    `user` says whose memories a request gets; `options` are those of `Turns`. The headers of `heedful proxy` count.
    """

    def __init__(
        self,
        memory: BlockingMemory,
        *,
        user: Callable[[UserAPIKeyAuth, Mapping[str, Any]], str | None] = user_of,
        **options: Any,
    ) -> None:
        super().__init__()
        self._conversations = Conversations(memory, **options)
        self._user = user
        self._turns = Runs(most=REMEMBERED)
        """By LiteLLM's id of a call."""

    async def async_pre_call_hook(
        self, user_api_key_dict: UserAPIKeyAuth, cache: DualCache, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        protocol, names = _PROTOCOLS.get(call_type, (None, ()))
        headers = _headers(data)
        if protocol is None or headers.get("x-heedful-skip"):
            return data
        session, answer_id = headers.get("x-heedful-session"), headers.get("x-heedful-answer")
        user = self._user(user_api_key_dict, data)
        call_id = str(data.get("litellm_call_id"))
        answer_id = answer_id or (call_id if call_type == "aresponses" else None)
        turn = await self._conversations.ask(protocol.asked(data), user, session, answer_id)
        if turn is None:
            return data
        self._turns.put(call_id, (turn, protocol))
        if turn.memories.prompt:
            changed = json.dumps({name: data[name] for name in names if name in data})
            data.update(json.loads(protocol.with_memories(changed, turn.memories.prompt)))
        return data

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        turn, protocol = self._turns.pop(str(kwargs.get("litellm_call_id")), (None, None))
        if turn is not None and protocol is not None:
            reply = Reply()
            protocol.read(response_obj.model_dump(mode="json"), reply)
            self._conversations.keep(turn, reply)


def _headers(data: Mapping[str, Any]) -> dict[str, str]:
    headers = (data.get("proxy_server_request") or {}).get("headers") or {}
    return {str(name).lower(): str(value) for name, value in headers.items()}
