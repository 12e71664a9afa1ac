"""Hooks: functions between a caller and the store.

A hook is called as `hook(original_func, action, session_id, **kwargs)`. It may look at what is about to be stored,
change it, refuse it by raising, and act before or after `original_func(...)` stores it.
For feedback, `action` is "add" and `kwargs` has `feedback`; for metadata, it is "update" with `metadata`, "delete"
with `keys`, or "get".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from heedful.api import checks
from heedful.clock import system_clock
from heedful.errors import HeedfulError, Invalid, Unavailable
from heedful.model import FeedbackMetrics
from heedful.notifications.channels import Channel

logger = logging.getLogger("heedful.audit")

Hook = Callable[..., Any]
Original = Callable[..., Any]
Metrics = Callable[[], FeedbackMetrics]

MAX_COMMENT = 1_000

_ATTACHED: ContextVar[tuple[Channel, ...]] = ContextVar("heedful_attached", default=())
_METRICS: ContextVar[Metrics | None] = ContextVar("heedful_metrics", default=None)


def create_combined_hook(*hooks: Hook) -> Hook:
    """Combines hooks into one; the first is the outermost."""
    return _CombinedHook(hooks)


class _CombinedHook:
    def __init__(self, hooks: Sequence[Hook]) -> None:
        self.hooks = tuple(hooks)

    def __call__(self, original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        names = tuple(kwargs)
        call = original_func
        for hook in reversed(self.hooks):
            call = _around(hook, call, action, session_id, names)
        return call(*kwargs.values())


def _around(hook: Hook, inner: Original, action: str, session_id: str, names: Sequence[str]) -> Original:
    def call(*values: Any) -> Any:
        return hook(inner, action, session_id, **dict(zip(names, values, strict=True)))

    return call


def validation_hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
    """Trims the comment, limits it to 1,000 characters, and requires one with "down"."""
    feedback = dict(kwargs["feedback"])
    comment = checks.any_text("comment", feedback.get("comment") or "").strip()
    if feedback.get("rating") == "down" and not comment:
        message, remedy = 'comment is required with the rating "down"', "Say in a few words what was wrong"
        raise Invalid(message, field="comment", value=feedback.get("comment"), remedy=remedy)
    feedback["comment"] = checks.any_text("comment", comment, MAX_COMMENT)
    feedback["_validated_at"] = system_clock().isoformat()
    return original_func(feedback)


def audit_hook(original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
    """Logs to `heedful.audit` before and after something is stored, and why it wasn't."""
    arguments = {name: dict(value) if isinstance(value, Mapping) else value for name, value in kwargs.items()}
    logger.info("%s session=%r %s", action, session_id, arguments)
    try:
        result = original_func(*kwargs.values())
    except Exception as error:
        logger.warning("%s session=%r refused: %s", action, session_id, error)
        raise
    logger.info("%s session=%r stored", action, session_id)
    return result


def is_down(feedback: Mapping[str, Any]) -> bool:
    """Whether the rating is negative."""
    return feedback.get("rating") == "down"


class AlertHook:
    """Sends feedback to channels; by default what is rated "down".

    The alert is written in the same transaction as the feedback and delivered in the background, so it neither delays
    the caller nor gets lost.
    """

    def __init__(self, *channels: Channel, when: Callable[[Mapping[str, Any]], bool] = is_down) -> None:
        if not channels:
            raise Invalid("an AlertHook needs a channel", field="channels", remedy="Pass Webhook(…), Slack(…), …")
        self.channels = channels
        self._when = when

    def __call__(self, original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        feedback = kwargs["feedback"]
        if not self._when(feedback):
            return original_func(feedback)
        token = _ATTACHED.set((*_ATTACHED.get(), *self.channels))
        try:
            return original_func(feedback)
        finally:
            _ATTACHED.reset(token)


class AnalyticsHook:
    """Counts feedback. The counts are read from the store, so they agree across processes and restarts."""

    def __init__(self) -> None:
        self._metrics: Metrics | None = None

    def bind(self, metrics: Metrics) -> None:
        """Connects it to the metrics of a store; called when the store is opened."""
        self._metrics = metrics

    def __call__(self, original_func: Original, action: str, session_id: str, **kwargs: Any) -> Any:
        self._metrics = _METRICS.get() or self._metrics
        return original_func(kwargs["feedback"])

    def get_metrics(self) -> dict[str, Any]:
        """`total`, `positive`, `negative`, `neutral` and `avg_comment_length` of all active feedback."""
        if self._metrics is None:
            message = "this hook is not attached to a store yet"
            raise Unavailable(message, code="hook_unbound", remedy="Pass it as feedback_hook when the store is opened")
        return self._metrics().model_dump()


def combined_hooks(hook: Hook | None) -> Iterator[Hook]:
    """A hook, and the hooks that it combines."""
    if hook is None:
        return
    yield hook
    for inner in getattr(hook, "hooks", ()):
        yield from combined_hooks(inner)


def hook_channels() -> tuple[Channel, ...]:
    """The channels that hooks chose for what is being stored."""
    return _ATTACHED.get()


def run_hook(
    hook: Hook | None, store: Original, action: str, session_id: str, metrics: Metrics | None = None, **kwargs: Any
) -> list[Any]:
    """Stores something through a hook, and distinguishes errors before from errors after storing.

    Returns the results of `store`, one for each time the hook called it. The hook gets the result's `id`.
    """
    results: list[Any] = []

    def original(*values: Any) -> Any:
        results.append(store(*values))
        return getattr(results[-1], "id", results[-1])

    if hook is None:
        original(*kwargs.values())
        return results
    token = _METRICS.set(metrics)
    try:
        hook(original, action, session_id, **kwargs)
    except Exception as error:
        if all(result is None for result in results):
            raise
        raise HeedfulError(
            f"the data for session {session_id!r} was stored, but its hook then failed with "
            f"{type(error).__name__}: {error}",
            code="hook_failed_after_storing",
            value=getattr(results[-1], "id", None),
            remedy="Don't send it again; fix the hook",
        ) from error
    finally:
        _METRICS.reset(token)
    return results
