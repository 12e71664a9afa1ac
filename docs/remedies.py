"""What to do about each error code, for the page about troubleshooting in docs/generate.py."""

from __future__ import annotations

from docs.markdown import NOTICE
from docs.meanings import CODES
from heedful import errors
from heedful.interfaces.problems import BY_CODE, BY_KIND

STATUSES = {**BY_CODE, "fault": 500}

REMEDIES: dict[str, dict[str, str]] = {
    "Calls and values": {
        "invalid": (
            "Read `field`, `value` and the limit in the message, and correct that argument. "
            "[Limits](settings.md#limits) are fixed."
        ),
        "not_found": "Check the id, and that it is of this project: what other projects have is not found either.",
        "conflict": "Read the message: it says what is stored already.",
        "forbidden": (
            "Check that sender and receiver of the alert have the same secret, and that their clocks agree. See "
            "[alerts](../howto/send-alerts.md)."
        ),
        "unavailable": "Read the message: it names what can't be used. Try again once it can.",
        "error": "You should not meet it: every error has a code of its own.",
        "changed_meanwhile": "Read it again, decide again, and send the new `etag`.",
        "closed_already": "Look at what was done. Pass `if_match` to decide otherwise, or reopen the item.",
        "fact_expired": "Remember what holds now as a new fact.",
        "taught_already": "There is nothing left to teach. Pass another text to say something else.",
        "unknown_key": "Use one of the keys that the message names; sessions get theirs by `update_metadata`.",
        "external_id_reused": "Use an id of its own for each entry, recall, execution and signal.",
        "idempotency_key_reused": (
            "Use a new key for each different call; the same key is for retries of the same call."
        ),
        "in_progress": "Wait for a moment, and retry with the same key: you get the result of the first call.",
        "shown_once": (
            "If you don't have the secret, revoke what was made, and make another with a new `idempotency_key`."
        ),
        "hook_failed_after_storing": "Don't send it again. Fix [the hook](../howto/use-hooks.md).",
        "hook_unbound": "Pass the hook as `feedback_hook` when you open the store.",
        "job_not_ended": "Wait for it to end, or cancel it. See [jobs](../howto/run-in-the-background.md).",
        "no_global_factory": (
            "Call `initialize_global_factory(connection_string, database_name)` when the program starts."
        ),
        "not_part_of_heedful": "Leave the call out. [What each system has here](compat.md) is listed.",
        "extra_missing": "Run the `pip install` that the message names.",
    },
    "Files": {
        "unreadable": "Check the path, and that the user may read the file. The other files were remembered.",
        "undecodable": "Convert the file to UTF-8, or remember its text.",
        "unsupported": "Convert it to a kind that can be [read](../howto/remember-files.md), or remember its text.",
        "file_unreadable": "Check that the user may read the file, and that it is not a folder.",
        "file_unwritable": "Check that the folder exists and may be written to, or name another file.",
        "file_too_large": "Split the file. If you trust an archive, unpack it, and import its files one by one.",
        "training_data_changed": (
            "Begin again without a cursor. With `until` set to a time in the past, new ratings don't count; "
            "or export where the store is, which takes no pages."
        ),
        "file_damaged": "Export the project again, and compare the sizes: a transfer may have cut the file off.",
        "file_newer": "Upgrade Heedful to the version that wrote the file, or a later one.",
        "disk_full": (
            "Free some space, and try again. [Retention](../howto/maintain-a-store.md#how-long-things-are-kept) "
            "removes what is no longer needed."
        ),
    },
    "Stores": {
        "store_missing": "Check the name and the folder you are in. `remember` makes a store; reading never does.",
        "store_busy": (
            "Try again. If it happens often on a file, look for a process that holds a transaction open, write "
            "from fewer threads, or [use PostgreSQL](../howto/use-postgresql.md)."
        ),
        "store_closed": "Open the store again. Close it only after the last thread has finished.",
        "store_damaged": "Run `heedful doctor`. If it can't help, restore [a backup](../howto/back-up.md).",
        "store_moved": (
            "Put the file back together with its `-wal` and `-shm`, and the store accepts writes again. Otherwise "
            "close the store in every process and open it again. Stop these processes before you move a file."
        ),
        "store_io": "Check the disk, and that the store is on a local one: network file systems don't work.",
        "store_read_only": (
            "Check that the folder exists and that the user may write to it. On PostgreSQL, open it as the owner "
            "of its tables."
        ),
        "store_foreign": "Name another file or database: this one belongs to another program.",
        "store_newer": (
            "Upgrade Heedful, or open the store with the version that made it. See [upgrades](../upgrades.md)."
        ),
        "store_refused": (
            "Check user, password, database and options of the URL. The message has the words of PostgreSQL."
        ),
        "store_unreachable": (
            "Check host, port and network, and that the server runs and has a primary. A retry with an "
            "idempotency key counts once."
        ),
        "store_login": "Check user, password and `authSource` of the MongoDB URL.",
        "store_forbidden": "Grant the role `readWrite` on the database to the user of the MongoDB URL.",
        "store_failed": "Read the log of the MongoDB server.",
        "pgvector_missing": (
            "Install pgvector 0.8 or later, and have an administrator run the statement in the message. See "
            "[PostgreSQL](../howto/use-postgresql.md)."
        ),
        "citus_missing": (
            "Install Citus on all servers, and have an administrator run `CREATE EXTENSION citus`. See "
            "[Spread projects over several servers](../howto/spread-over-nodes.md)."
        ),
        "already_distributed": "Nothing is to be done. To use a server that was added, rebalance, as the message says.",
        "not_a_cluster": "Copy the store to PostgreSQL with Citus: `heedful copy`.",
        "too_large": "Shorten the text or the metadata: MongoDB stores at most 16 MB in a document.",
        "unstorable": (
            "Use valid Unicode without NUL, whole numbers within 64 bits, and fewer than 100 levels of nesting. "
            "`heedful copy` names the row: correct or forget it in the source, and run the same copy again."
        ),
    },
    "Copies, exports and imports": {
        "store_unfinished": "Run the same `heedful copy` again: it resumes where it stopped.",
        "copy_differs": "Make sure that nobody writes to the copy, and run the same `heedful copy` again.",
        "copy_taken_over": "Wait for the other copy to finish.",
        "target_not_empty": "Name a new file or an empty database, or finish the copy that was begun there.",
        "project_not_empty": "Import the project under another name with `--project`.",
        "id_taken": "Import the file into another store: ids are unique in one.",
    },
    "Models": {
        "model_missing": "Run the `pip install` that the message names, or check the folder of your model.",
        "model_changed": "Install `heedful` and `heedful-minilm` again with `pip install --force-reinstall`.",
        "model_unusable": "Export the ONNX model again, with a fixed hidden size.",
        "model_unreachable": (
            "Check the address and the key in the [settings](settings.md), and that the endpoint answers from "
            "this machine."
        ),
        "other_model": (
            "Open the store with the model that made its vectors, or run `heedful reembed`. See [choose a "
            "model](../howto/choose-a-model.md)."
        ),
    },
    "Servers and clients": {
        "server_unreachable": (
            "Check the address, and that `heedful serve` runs there. `/healthz` answers without a key."
        ),
        "server_timeout": (
            "Raise `timeout` of `connect`. With an `idempotency_key`, the call can be retried without counting twice."
        ),
        "not_heedful": (
            "Use `http://host:port` without a path, and check that client and server have versions that "
            "[fit](../upgrades.md)."
        ),
        "fault": "Look for the `request_id` of the answer in the server's log; then retry.",
        "rate_limited": (
            "Wait as long as `Retry-After` says. The operator can raise `--rate-limit`, for all or for one key."
        ),
        "not_ready": "Try again in some minutes, with the store open: the queries are embedded in the background.",
        "server_busy": (
            "Wait as long as `Retry-After` says, and send fewer calls at the same time: others use the server, too. "
            "More workers (`--workers`) help all of them. Of jobs, cancel some, or improve many sessions in one."
        ),
        "server_stopping": "Send it again once the server runs. With an idempotency key, it counts once.",
        "write_limited": "Wait as long as `Retry-After` says. The operator can raise `--max-written`.",
        "body_too_large": (
            "Send it in several calls, or start the server with a larger `--max-body`. The proxy has a limit of "
            "its own. Feedback may have 128 KiB: shorten the comment or the metadata, or send text as UTF-8 instead of "
            "`\\uXXXX`."
        ),
        "too_slow": (
            "Send at least 10 kB a second, or less in each call. A proxy that buffers requests helps slow callers."
        ),
        "malformed": "Send one JSON object in UTF-8, and the parameters of GET and DELETE in the query string.",
        "media_type": "Send `Content-Type: application/json`.",
        "method": "Use the method in the header `Allow`, as in [the reference](rest.md).",
        "no_route": (
            "Compare the path with [the reference](rest.md): all begin with `/v1/projects/`. A slash in an id is "
            "written `%2F`."
        ),
        "upstream_failed": "Check `HEEDFUL_UPSTREAM`, and whether what it names runs.",
        "upstream_timeout": "Ask again, or look at the endpoint behind the proxy: it said nothing for ten minutes.",
        "address_in_use": "Choose another `--port`, or stop what listens there.",
        "address_unusable": "Use an address of this machine, and a port above 1023 unless you are root.",
    },
    "Keys and tokens": {
        "origin_not_allowed": (
            "Start the server with `--cors-origin` and the origin of the page. For the proxy, set "
            "`HEEDFUL_PROXY_KEY`, and send it as the API key."
        ),
        "key_missing": "Send `Authorization: Bearer hf_…`, or set `HEEDFUL_API_KEY`.",
        "key_invalid": (
            "Make another with `heedful keys add NAME`. If the key of the server is lost, start it once with "
            "`--new-key`."
        ),
        "key_not_for_file": (
            "If you trust the address, name it yourself: as `HEEDFUL_STORE` in the environment, or as `--store`."
        ),
        "store_not_for_file": (
            "If you trust the file, name it in `HEEDFUL_CONFIG`; or name the store yourself, as `HEEDFUL_STORE` or "
            "`--store`."
        ),
        "scope_missing": "Use a key with the scope that the message names. See [keys](../howto/give-keys.md).",
        "project_key": "Use a server-wide key: this concerns all projects.",
        "token_expired": "Have your own server make a new token for the page.",
        "token_invalid": (
            "Have your own server make a new token. All end when the [signing "
            "secret](../howto/give-keys.md#when-a-secret-has-leaked) changes."
        ),
    },
    "Connectors": {
        "connector_kind": (
            "Begin the URL with one of the kinds that the message names. See [connect a "
            "database](../howto/connect-a-database.md)."
        ),
        "connector_option": "Leave the option out; the message says which are allowed.",
        "connector_host": (
            "Have the operator add `host:port` to `connector_hosts`, or create the connector with a server-wide key."
        ),
        "connector_folder": (
            "Have the operator add the folder to `connector_folders`, or create the connector with a server-wide key."
        ),
        "connector_unconfirmed": "Look at its URL, and confirm it: `heedful connectors confirm NAME`.",
        "store_as_connector": "Name a database that has no store of Heedful in it.",
        "role_privileged": (
            "Connect as a role that can only read. The operator can accept the risk with `privileged=True`."
        ),
        "url_unreadable": "Use a SQLAlchemy URL, with percent-encoded user and password.",
        "not_a_database": "Check the path: it names something else.",
        "database_missing": "Check the name or path in the URL: connecting does not create a database.",
        "database_login": "Check user and password, and what the server allows them from this machine.",
        "database_forbidden": "Grant the right to read that table to the connector's user.",
        "database_unreachable": "Check host, port and network, and that the server runs.",
        "database_in_use": "Close the other connection, or try again later.",
        "database_tls": "Check `sslmode`, `sslrootcert` and the server's certificate.",
        "secret_missing": "Set the variable where Heedful runs, and start it again.",
        "secret_unlisted": "Have the operator add the variable to `connector_secrets`.",
        "secret_plain": "Write the password as `${VARIABLE}`, or set `HEEDFUL_SECRET_KEY`.",
        "secret_reference": "Refer to variables in user and password alone, and to none that begins with `HEEDFUL_`.",
        "secret_key_missing": "Set `HEEDFUL_SECRET_KEY` to the key that the URL was encrypted with.",
        "secret_key_wrong": (
            "Add the old key behind the new one in `HEEDFUL_SECRET_KEY`, or create the connector again."
        ),
        "secret_key_invalid": "Make a key as [the guide](../howto/secure-connectors.md#secrets) shows.",
    },
    "Questions and SQL": {
        "nothing_proven": (
            "Add a golden example, confirm the suggestion if there is one, or configure a [language "
            "model](../howto/ask-questions-of-data.md)."
        ),
        "no_sql_written": "Ask in other words, or add a golden example for it.",
        "personal_example": "Pass `audience`, or a question that names the person.",
        "not_proven": ("Rate the execution first, or retract the negative feedback about it. Visitors don't count."),
        "not_suggested": "Look the question up again: the suggestion has changed.",
        "unknown_table": (
            "Check the name: `connectors.schema` lists the tables. After a change of the database, call "
            "`connectors.refresh`."
        ),
        "unknown_column": "Check the name: the message has the words of the database.",
        "query_failed": "Correct the SQL: the message has the words of the database.",
        "query_timeout": "Ask for less, or add an index. The operator can raise `query_seconds`.",
        "query_memory": "Ask for fewer or shorter values. The operator can raise `query_memory`.",
        "query_disk": "Sort or join less. The operator can raise `query_disk`.",
        "query_busy": "Send it again soon. The operator can raise `query_processes`.",
        "query_crashed": "Ask for less. If any query does it, look at the driver of the database and the system's log.",
        "query_process": "Raise the limits on processes and open files of the user that Heedful runs as.",
        "result_unreadable": "Cast the column to text.",
        "read_only": "Pass one `SELECT`.",
        "sql_empty": "Pass one `SELECT`.",
        "sql_several": "Pass one statement at a time.",
        "sql_command": "Pass one `SELECT`: commands of the database are not run.",
        "sql_writes": "Pass one `SELECT`: connectors only read.",
        "sql_into": "Leave `INTO` out; the rows are returned.",
        "sql_locks": "Leave out `FOR UPDATE` and `FOR SHARE`.",
        "sql_file": "Read tables of the database alone, not files.",
        "sql_function": "Leave the function out: it can do more than read.",
        "sql_parameter": "Write parameters as `:name`, give each one value, and put a space after other colons.",
        "sql_unreadable": "Write it in the dialect of the connector's database.",
        "sql_too_long": "Shorten it, or put long lists of values into a table.",
        "sql_too_deep": "Split it with `WITH`, and give each `JOIN` its `ON`.",
        "sql_too_complex": "Shorten it, or put long lists of values into a table.",
    },
}


def troubleshooting_page(found: dict[str, set[str]]) -> str:
    """What to do about each of the codes, with the classes they appear in."""
    written = [code for group in REMEDIES.values() for code in group]
    differing = sorted(set(written) ^ set(found))
    if differing or len(written) != len(set(written)):
        raise KeyError(f"docs/remedies.py and the code differ in the error codes {differing}: correct REMEDIES")
    parts = [
        "# Troubleshooting",
        NOTICE,
        "By the code of the error. It is `error.code` in Python, `code` in an answer over HTTP, and `error.code` of "
        "what a command prints with `--json`. The message says more: what was refused, and what to do about it.",
        "If there is no error and the result is not what you expect, `heedful doctor` checks the store, "
        "`heedful doctor --security` the server, and `heedful explain QUESTION` says why facts rank as they do. The "
        "[FAQ](../faq.md) has the rest.",
    ]
    for group, remedies in REMEDIES.items():
        parts.append(f"## {group}")
        for code in sorted(remedies):
            parts += [f"### {code}", f"{CODES[code]} *{_where(code, found[code])}*", remedies[code]]
    return "\n\n".join(parts)


def _where(code: str, owners: set[str]) -> str:
    """The classes that carry a code, and the status it has over HTTP."""
    kinds = [kind for name in sorted(owners) if (kind := getattr(errors, name, None)) is not None]
    statuses = {str(STATUSES.get(code) or BY_KIND.get(kind, 500)) for kind in kinds}
    return ", ".join([*sorted(owners), *sorted(statuses)])
