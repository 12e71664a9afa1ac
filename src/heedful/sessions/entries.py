"""Questions and answers of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from heedful.api import checks
from heedful.api.parameters import OnToken, Shares
from heedful.clock import from_stored, has_no_receipt, new_id
from heedful.errors import Invalid, NotFound, quoted
from heedful.ledger import receipts
from heedful.ledger.opinions import FeedbackRow
from heedful.ledger.rating_signals import EntryRow, Uses
from heedful.ledger.receipts import receipt_of
from heedful.ledger.used_facts import MAX_ANSWER, detect
from heedful.memory.answer import Written, extract, opinion, without_opinions, write
from heedful.memory.recall import RecallRequest, recall, was_rated
from heedful.model import Detection, Entry, Hit, Page, Recall, Usage, UsedFact, limits
from heedful.providers.llm import LanguageModel
from heedful.sessions import feedback
from heedful.sessions.session_store import Transaction, page
from heedful.sessions.space import SessionSpace
from heedful.storage import facts
from heedful.storage.rows import to_model
from heedful.workspace import Workspace


def add(
    space: SessionSpace,
    session_id: str,
    question: str,
    answer: str,
    context: str | None,
    recall_id: str | None,
    used: Shares | None,
    external_id: str | None = None,
) -> Entry:
    """Stores an answer that was made elsewhere; creates the session if it is new."""
    checks.question("question", question)
    checks.any_text("answer", answer, limits.MAX_CONTENT)
    if context is not None:
        checks.any_text("context", context, limits.MAX_CONTENT)
    if external_id is not None:
        checks.name("external_id", external_id)
    dataset, uses = None, None
    if used is not None and recall_id is None:
        raise Invalid("used requires a recall_id", field="used", remedy="Pass the recall_id that showed these facts")
    if recall_id is not None and space.workspace is not None:
        checks.identifier("recall_id", recall_id)
        shown: list[receipts.ShownFact] = []
        if not has_no_receipt(recall_id):
            with space.workspace.read() as connection:
                receipt = receipt_of(space.workspace, connection, recall_id)
            dataset, shown, recall_id = receipt.dataset, receipt.shown, receipt.id
        if used is not None:
            uses = _uses(_weights(used, [fact.fact_id for fact in shown], recall_id), receipts.links_of(shown))
    row = EntryRow(
        id=new_id(),
        session_id=session_id,
        question=question,
        answer=answer,
        context=context,
        at=space.now(),
        dataset=dataset,
        recall_id=recall_id,
        used=uses,
        model=None,
        usage=None,
        external_id=external_id,
    )
    return store_entry(space, row)


def store_entry(space: SessionSpace, row: EntryRow) -> Entry:
    """Stores an entry, with the ratings that wait for it; creates its session if it is new. With an external id, one
    that is there already is returned as it is."""

    def write(tx: Transaction) -> EntryRow:
        stored = None if row.external_id is None else tx.conversations.external_entry(row.external_id)
        if stored is None:
            stored = row
            if not tx.conversations.add_entry(row):
                tx.conversations.create(row.session_id, {}, row.at)
                tx.conversations.add_entry(row)
        if row.external_id is not None and space.feedback_hook is None:
            feedback.add_waiting(space, tx, stored)
        return stored

    stored = space.store.write(write)
    if row.external_id is None:
        return _to_entry(row, [], _contexts(space, [row]))
    if (stored.session_id, stored.question, stored.answer) != (row.session_id, row.question, row.answer):
        raise checks.external_id_reused(row.external_id, "entry")
    if space.feedback_hook is not None:
        feedback.pass_waiting(space, stored)
    space.feedback_changed()
    return get(space, stored.session_id, stored.id)


def list_entries(
    space: SessionSpace, session_id: str, cursor: str | None, limit: int, newest_first: bool
) -> Page[Entry]:
    after = checks.cursor(cursor)

    def read(tx: Transaction) -> tuple[list[EntryRow], list[FeedbackRow]]:
        space.session(tx, session_id)
        rows = tx.conversations.entries(session_id, after, limit + 1, newest_first)
        return rows, tx.feedbacks.active("entry", [row.id for row in rows])

    rows, opinions = space.store.read(read)
    contexts = _contexts(space, rows)
    return page(lambda count: rows, limit, lambda row: _to_entry(row, opinions, contexts))


def get(space: SessionSpace, session_id: str, qa_id: str) -> Entry:

    def read(tx: Transaction) -> tuple[EntryRow, list[FeedbackRow]]:
        row = tx.conversations.entry(session_id, qa_id)
        if row is None:
            raise NotFound(f"session {session_id!r} has no entry {qa_id!r}", field="qa_id", value=qa_id)
        return row, tx.feedbacks.active("entry", [row.id])

    row, opinions = space.store.read(read)
    return _to_entry(row, opinions, _contexts(space, [row]))


def attribute_facts(workspace: Workspace, row: EntryRow) -> Uses:
    """The facts that an answer used, detected in its text, weighted by confidence."""
    if row.recall_id is None:
        return []
    with workspace.read() as connection:
        receipt = receipts.get(connection, workspace.project, row.recall_id)
    if receipt is None:
        return []
    detections = detect(
        workspace, row.answer[:MAX_ANSWER], [fact.fact_id for fact in receipt.shown], query=row.question
    )
    return share_weights(detections, receipts.links_of(receipt.shown))


def share_weights(detections: Sequence[Detection], links: Mapping[str, list[str]]) -> Uses:
    """Detections as shares of an answer."""
    used = {detection.fact_id: detection.confidence for detection in detections if detection.signal_type == "used"}
    return _uses(used, links)


def _weights(used: Shares, shown: Sequence[str], recall_id: str) -> Mapping[str, float]:
    """The weights of the named facts, after checking them."""
    if isinstance(used, str) or not isinstance(used, Sequence | Mapping):
        raise Invalid(f"used must be a list of facts, or their weights, got {quoted(used)}", field="used", value=used)
    weights = used if isinstance(used, Mapping) else dict.fromkeys(used, 1.0)
    for fact, weight in weights.items():
        checks.identifier("used", fact)
        checks.fraction("used", weight)
        if fact not in shown:
            message = f"fact {fact!r} was not shown by recall {recall_id}"
            raise NotFound(message, field="used", value=fact, remedy="Name facts by the fact_id of that recall's hits")
    return weights


def _uses(used: Mapping[str, float], links: Mapping[str, list[str]]) -> Uses:
    total = sum(used.values())
    return [(fact, round(weight / total, 6), links.get(fact, [])) for fact, weight in used.items() if weight > 0]


def _contexts(space: SessionSpace, rows: Sequence[EntryRow]) -> dict[str, str]:
    """The texts that each recall showed, without facts that were forgotten since."""
    recall_ids = [row.recall_id for row in rows if row.context is None and row.recall_id is not None]
    if not recall_ids or space.workspace is None:
        return {}
    with space.workspace.read() as connection:
        shown = receipts.shown_facts(connection, recall_ids)
        texts = facts.texts(connection, sorted({fact for fact_ids in shown.values() for fact in fact_ids}))
    return {
        recall_id: "\n\n".join(
            f"[{rank}] {texts[fact]}" for rank, fact in enumerate(fact_ids, start=1) if fact in texts
        )
        for recall_id, fact_ids in shown.items()
    }


def _to_entry(row: EntryRow, opinions: Sequence[FeedbackRow], contexts: Mapping[str, str]) -> Entry:
    own_feedback = [opinion for opinion in opinions if opinion.target_id == row.id]
    latest = own_feedback[-1] if own_feedback else None
    used = [UsedFact(fact_id=fact, share=share, links=links) for fact, share, links in row.used or ()]
    return to_model(
        Entry,
        row,
        qa_id=row.id,
        context=row.context if row.context is not None else contexts.get(row.recall_id or "", ""),
        time=from_stored(row.at),
        feedback_text=None if latest is None else latest.comment,
        feedback_score=None if latest is None else latest.score,
        used=None if row.used is None else used,
        usage=None if row.usage is None else Usage(**row.usage),
    )


MAX_EARLIER = 6  # How many turns of the conversation a language model gets.


def answer(
    space: SessionSpace,
    workspace: Workspace,
    model: LanguageModel | None,
    request: RecallRequest,
    session_id: str | None,
    on_token: OnToken | None,
    *,
    quiet: bool = False,
) -> Recall:
    """A recall with its answer, stored as an entry of the session, if one is named. Without one, `quiet` stores
    nothing at all."""
    external_id = request.external_id
    result = recall(workspace, request, keep=session_id is not None, quiet=quiet)
    if session_id is not None and external_id is not None:
        first = space.store.read(lambda tx: tx.conversations.external_entry(external_id))
        if first is not None:
            return _earlier_answer(result, first, session_id, on_token)
    hits = _judged(workspace, request, result.hits)
    if model is None:
        written = extract(request.query, hits, _similarity(workspace, request.query))
        if on_token is not None:
            on_token(written.text)
    else:
        rows: list[EntryRow] = []
        if session_id is not None:
            rows = space.store.read(lambda tx: tx.conversations.entries(session_id, None, MAX_EARLIER, True))
        earlier = [(row.question, row.answer) for row in reversed(rows)]
        written = write(model, request.query, hits, earlier, on_token)
        # Without characters that no store can hold.
        written = replace(written, text=written.text.replace("\0", "").encode(errors="replace").decode())
    if session_id is None:
        return result.model_copy(update={"answer": written.text})
    row = EntryRow(
        id=new_id(),
        session_id=session_id,
        question=request.query,
        answer=written.text,
        context=None,
        at=space.now(),
        dataset=result.dataset,
        recall_id=result.recall_id,
        used=_used_facts(workspace, result, written),
        model=written.model,
        usage=None if written.usage is None else asdict(written.usage),
        external_id=external_id,
    )
    entry = store_entry(space, row)
    return result.model_copy(update={"session_id": session_id, "qa_id": entry.qa_id, "answer": entry.answer})


def _earlier_answer(result: Recall, entry: EntryRow, session_id: str, on_token: OnToken | None) -> Recall:
    """The recall with the answer that it got when it was first sent with its external id."""
    if (entry.session_id, entry.recall_id) != (session_id, result.recall_id):
        raise checks.external_id_reused(str(entry.external_id), "entry")
    if on_token is not None:
        on_token(entry.answer)
    return result.model_copy(update={"session_id": session_id, "qa_id": entry.id, "answer": entry.answer})


def _judged(workspace: Workspace, request: RecallRequest, hits: list[Hit]) -> list[Hit]:
    """The hits with the opinions that concern the answer: what failed for a question that is only similar may answer
    this one, and where relevance alone counts, so it does for the answer."""
    if not request.weight:
        return [without_opinions(hit) for hit in hits]
    if not any(opinion(hit) < 0 for hit in hits) or was_rated(workspace, request.query, request.dataset):
        return hits
    return [hit if opinion(hit) >= 0 else without_opinions(hit) for hit in hits]


def _similarity(workspace: Workspace, question: str) -> Callable[[Sequence[str]], Sequence[float]]:
    def similarity(sentences: Sequence[str]) -> list[float]:
        if not sentences:
            return []
        question_vector, *vectors = workspace.embed([question, *sentences])
        return [float(question_vector @ vector) for vector in vectors]

    return similarity


def _used_facts(workspace: Workspace, result: Recall, written: Written) -> Uses:
    """The facts that the answer cites; if it cites none, those that are detected in it."""
    with workspace.read() as connection:
        receipt = receipts.get(connection, workspace.project, result.recall_id)
    links = {} if receipt is None else receipts.links_of(receipt.shown)
    if written.used or written.model is None:
        return [(use.fact_id, use.share, links.get(use.fact_id, [])) for use in written.used]
    detections = detect(workspace, written.text[:MAX_ANSWER], [hit.fact_id for hit in result.hits], query=result.query)
    return share_weights(detections, links)
