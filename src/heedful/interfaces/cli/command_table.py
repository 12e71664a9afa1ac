"""The commands by group: their help in a line, and the module that has them, so that listing loads none of them."""

from __future__ import annotations

from typing import NamedTuple


class _Command(NamedTuple):
    """A command that need not be loaded to be listed: the subject of its module, its name there, its help in a line."""

    subject: str
    name: str
    help: str

    @property
    def module(self) -> str:
        """Integrations are above the command line, and have their commands themselves."""
        return self.subject if "." in self.subject else f"heedful.interfaces.cli.{self.subject}_commands"


GROUPS = {
    "Start": {
        "try": _Command("start", "try_", "Try the loop on your own FILES: ask, rate, and ask again."),
        "demo": _Command("demo", "demo", "Show the loop: facts, a question, feedback, and undo."),
        "remember": _Command("fact", "remember", "Store facts: TEXTS, or files and folders with --file."),
        "facts": _Command("fact", "list_facts", "List facts, in the order in which they were stored."),
        "datasets": _Command("fact", "datasets", "List datasets, oldest first."),
        "supersede": _Command("fact", "supersede", "Replace FACT_ID with TEXT."),
        "forget": _Command("fact", "forget", "Remove FACT_IDS, a source or a dataset."),
    },
    "Ask": {
        "recall": _Command("fact", "recall", "Find the facts that answer QUERY, best first."),
        "explain": _Command("fact", "explain", "Show why each fact ranks where it does for QUERY."),
        "sessions": _Command("session", "sessions", "Conversations: messages, answers, metadata and feedback."),
        "connect": _Command("query", "connect", "Connect a database by its SQLAlchemy URL."),
        "connectors": _Command("query", "connectors", "Connected databases."),
        "ask": _Command("query", "ask", "Answer a question about data, by proven or newly written SQL."),
        "run": _Command("query", "run", "Run one read-only statement; - reads it from standard input."),
        "executions": _Command("query", "executions", "Executed SQL with its results."),
        "cache": _Command("query", "cache", "Executions that can be reused."),
        "golden": _Command("query", "golden", "Golden examples: questions with the SQL that answers them."),
    },
    "Rate": {
        "signal": _Command("fact", "signal", "Say how useful facts were: for a --query, or of a --recall."),
        "detect": _Command("fact", "detect", "Detect which facts of RECALL_ID the ANSWER used."),
        "retract": _Command("fact", "retract", "Undo the signal or supersession EVENT_ID."),
        "feedback": _Command("query", "feedback", "Feedback on executions: right or wrong, and why."),
        "improve": _Command("upkeep", "improve", "Turn the feedback of sessions into better recall."),
        "review": _Command("review", "review", "Negative feedback as a queue: show, fix, resolve and undo."),
    },
    "See": {
        "stats": _Command("fact", "stats", "Show the usefulness of a dataset, or of one FACT_ID."),
        "insight": _Command("insight", "insight", "Reports on feedback."),
        "dashboard": _Command("server", "dashboard", "Serve the dashboard of the store."),
        "report": _Command("insight", "report", "Write a feedback report as one HTML file."),
        "digest": _Command("insight", "digest", "Summarise the feedback of a week, or of another period."),
        "replay": _Command("insight", "replay", "Try other policies and weights on recalls that were rated."),
        "regress": _Command("regress", "regress", "Ask rated questions again, and say which a change makes worse."),
    },
    "Operate": {
        "serve": _Command("server", "serve", "Serve the store over HTTP."),
        "proxy": _Command(
            "heedful.integrations.proxy.command", "proxy", "Put memories before an OpenAI-compatible endpoint."
        ),
        "worker": _Command("upkeep", "worker", "Run the jobs of all projects until stopped."),
        "mcp": _Command("server", "mcp", "Serve the store to an agent by MCP."),
        "jobs": _Command("upkeep", "jobs", "Background jobs."),
        "keys": _Command("server", "keys", "Keys to a server, for this project."),
        "audit": _Command("server", "audit", "Show refused requests and admin actions, newest first."),
        "policy": _Command("upkeep", "policy", "Show or set the ranking policy of recalls; none resets it."),
        "reembed": _Command("upkeep", "reembed", "Re-embed the whole store with the model of --embedding."),
        "migrate": _Command("upkeep", "migrate", "Create the tables of the store, or upgrade them."),
        "maintain": _Command("upkeep", "maintain", "Delete data past its retention, and run other maintenance."),
        "doctor": _Command("upkeep", "doctor", "Check the store, and repair derived data."),
        "verify": _Command("upkeep", "verify", "Replay the ledger, and compare every score with it."),
        "backup": _Command("upkeep", "backup", "Copy the file of the store while others use it."),
        "copy": _Command("upkeep", "copy", "Copy the store SOURCE into the empty store TARGET."),
        "export": _Command("upkeep", "export", "Write the project, or training data from ratings, to a file."),
        "import": _Command("upkeep", "import_", "Read a project, or what another system exported, from FILE."),
    },
}
"""The commands, by what somebody wants to do, in the order of the help."""

FIRST_STEPS = """\
Heedful, the feedback loop for AI agents: remember, recall, say what was useful, recall better.

  heedful demo                                     Watch the loop, in ten seconds.
  heedful try FILE                                 Try it on a text of yours. Nothing is stored.
  heedful remember --file FILE                     Store facts, one per line or paragraph.
  heedful recall "A QUESTION"                      Find the facts that answer it.
  heedful signal --recall RECALL_ID --helpful 1    Say that the fact at rank 1 helped.
  heedful dashboard                                See all of it in a browser.

All {count} commands: heedful --help. One of them: heedful COMMAND --help."""
"""Printed for a line without a command."""

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
