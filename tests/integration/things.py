"""One of each thing that a path of the API can name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from heedful.interfaces.client.surface import RemoteHeedful


def things(h: RemoteHeedful, folder: Path, session_id: str = "a session") -> dict[str, str]:
    """Makes them in a project; their ids by the names of parameters."""
    database = folder / f"{session_id}.db"
    with closing(sqlite3.connect(database)) as made, made:
        made.execute("CREATE TABLE t (a INTEGER)")
    fact = h.remember("Ada is the CEO.").facts[0].fact_id
    h.remember("Bo sings.", dataset=f"dataset of {session_id}")
    recall = h.recall("Who is the CEO?").recall_id
    event = h.signal_recall(recall, helpful=[fact]).event_ids[0]
    h.sessions.create(session_id, metadata={"team": "green"})
    run = f"run of {session_id}"
    entry = h.sessions.add_entry(session_id, "Who is the CEO?", "Ada.", external_id=run).qa_id
    said = h.sessions.add_message(session_id, "user", "Who is the CEO?").message_id
    h.sessions.add_session_feedback(session_id, {"rating": "down", "comment": "Slow."})
    connector = h.connectors.create("data", f"sqlite:///{database}").connector_id
    execution = h.executions.execute_query("SELECT a FROM t", question="Which a?").execution_id
    example = h.golden_examples.create("Which a?", "SELECT a FROM t").id
    chat = h.chat_sessions.create(name="a chat").id
    message = h.chat.chat_to_sql(chat, "Which a?").chat_message_id
    return {
        "dataset": f"dataset of {session_id}",
        "fact_id": fact,
        "recall_id": recall,
        "event_id": event,
        "session_id": session_id,
        "qa_id": entry,
        "external_id": run,
        "message_id": said,
        "connector_id": connector,
        "execution_id": execution,
        "feedback_id": h.feedback.create(is_positive=True, execution_id=execution).id,
        "chat_session_id": chat,
        "chat_message_id": message,
        "example_id": example,
        "item_id": h.review.list().items[0].item_id,
        "key_id": h.keys.create("a key").key_id,
        "job_id": h.jobs.improve().job_id,
    }
