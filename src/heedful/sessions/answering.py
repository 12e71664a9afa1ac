"""Recall with an answer made from the hits, and both kept if there is a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from heedful.chat.answer import Written, write
from heedful.chat.base import LanguageModel
from heedful.chat.extractive import extract
from heedful.ids import new_id
from heedful.memory.detect import MAX_ANSWER, detect
from heedful.memory.recall import Request, recall
from heedful.memory.workspace import Workspace
from heedful.model import Recall
from heedful.sessions import checks
from heedful.sessions.entries import keep, shared_out
from heedful.sessions.space import SessionSpace
from heedful.storage import receipts
from heedful.storage.sessions.base import EntryRow, Uses

EARLIER = 6
"""Turns of the conversation that a language model is told."""

OnToken = Callable[[str], None]


def answer(
    space: SessionSpace,
    workspace: Workspace,
    model: LanguageModel | None,
    request: Request,
    session_id: str | None,
    on_token: OnToken | None,
    *,
    quiet: bool = False,
) -> Recall:
    """A recall with its answer, which is kept as an entry of the session, if one is named. Without one, `quiet` keeps
    nothing at all."""
    name = None if session_id is None else checks.session_id(session_id)
    found = recall(workspace, request, keep=name is not None, quiet=quiet)
    if model is None:
        written = extract(request.query, found.hits, _similarity(workspace, request.query))
        if on_token is not None:
            on_token(written.text)
    else:
        earlier = [] if name is None else _earlier(space, name)
        written = _storable(write(model, request.query, found.hits, earlier, on_token))
    if name is None:
        return found.model_copy(update={"answer": written.text})
    row = EntryRow(
        id=new_id(),
        session_id=name,
        question=request.query,
        answer=written.text,
        context=None,
        at=space.now(),
        dataset=found.dataset,
        recall_id=found.recall_id,
        used=_used(workspace, found, written),
        model=written.model,
        usage=None if written.usage is None else asdict(written.usage),
    )
    keep(space, row)
    return found.model_copy(update={"session_id": name, "qa_id": row.id, "answer": written.text})


def _storable(written: Written) -> Written:
    """The answer without what no store can hold: a model may write anything."""
    text = written.text.replace("\0", "").encode(errors="replace").decode()
    return replace(written, text=text)


def _similarity(workspace: Workspace, question: str) -> Callable[[Sequence[str]], Sequence[float]]:
    def similarity(sentences: Sequence[str]) -> list[float]:
        if not sentences:
            return []
        asked, *said = workspace.embed([question, *sentences])
        return [float(asked @ vector) for vector in said]

    return similarity


def _earlier(space: SessionSpace, session_id: str) -> list[tuple[str, str]]:
    rows = space.store.read(lambda tx: tx.conversations.entries(session_id, None, EARLIER, True))
    return [(row.question, row.answer) for row in reversed(rows)]


def _used(workspace: Workspace, found: Recall, written: Written) -> Uses:
    """The facts the answer cites; of one that cites none, those that it can be told to have used."""
    with workspace.read() as connection:
        shown = receipts.get(connection, workspace.project, found.recall_id)
    links = {} if shown is None else receipts.links_of(shown.shown)
    if written.used or written.model is None:
        return [(each.fact_id, each.share, links.get(each.fact_id, [])) for each in written.used]
    told = detect(workspace, written.text[:MAX_ANSWER], [hit.fact_id for hit in found.hits], query=found.query)
    return shared_out(told, links)
