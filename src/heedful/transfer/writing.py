"""Lines become rows again, with new numbers; what is derived from them is rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import orjson
from sqlalchemy import JSON, Connection, Table, insert, select, update

from heedful.errors import Conflict, quoted
from heedful.ranking.signals import kind_of
from heedful.storage import facts, graph, ledger, receipts, schema
from heedful.storage.ledger import Event
from heedful.transfer.lines import Kind
from heedful.transfer.numbers import Numbers
from heedful.transfer.reading import Numbered, damaged, to_columns
from heedful.transfer.table_rows import insert as insert_verbatim

Row = dict[str, Any]


class VectorOf(Protocol):
    """The vector of a line, made for the store's model; None if there is none and it can be made later."""

    def __call__(self, each: Numbered, *, must: bool) -> bytes | None: ...


class Writing:
    """Writes the lines of one project, a run of one type at a time, in an open transaction."""

    def __init__(self, connection: Connection, numbers: Numbers, model: int, vector: VectorOf) -> None:
        self._connection = connection
        self.numbers = numbers
        self._model = model
        self._vector = vector
        self._special: dict[str, Callable[[Sequence[Numbered], list[Row]], None]] = {
            "project": self._project,
            "dataset": self._datasets,
            "query": self._queries,
            "fact": self._facts,
            "event": self._events,
            "session": self._sessions,
            "connector": self._connectors,
        }

    def write(self, kind: Kind, run: Sequence[Numbered]) -> None:
        self._check_new(kind, run)
        rows = self._rows(kind, run)
        special = self._special.get(kind.name)
        if special is not None:
            special(run, rows)
            return
        if kind.has_vector:
            self._add_vectors(run, rows)
        self._insert(kind.table, rows)

    def _insert(self, table: Table, rows: list[Row]) -> None:
        packed = [column.name for column in table.columns if isinstance(column.type, JSON)]
        texts = [{name: _packed(row[name]) for name in packed if name in row} for row in rows]
        insert_verbatim(self._connection, table, [row | text for row, text in zip(rows, texts, strict=True)])

    def _rows(self, kind: Kind, run: Sequence[Numbered]) -> list[Row]:
        """Rows with numbers instead of names."""
        rows = [to_columns(kind, each.line) for each in run]
        columns = kind.table.columns
        if "author_kind" in columns:
            # Files of older versions say it by the name alone.
            rows = [{**row, "author_kind": row["author_kind"] or kind_of(row["author"])} for row in rows]
        if "project_id" in columns:
            rows = [row | {"project_id": self.numbers.project} for row in rows]
        if "dataset_id" in columns:
            rows = self._with_references(run, rows, "dataset", "dataset_id", self.numbers.datasets)
        if "session_seq" in columns:
            seqs = self.numbers.sessions(each.line["session"] for each in run if "session" in each.line)
            rows = self._with_references(run, rows, "session", "session_seq", seqs)
        if "fact_seq" in columns:
            rows = self._with_references(
                run, rows, "fact", "fact_seq", self.numbers.facts(each.line["fact"] for each in run)
            )
        if "item_seq" in columns:
            rows = self._with_references(
                run, rows, "item", "item_seq", self.numbers.items(each.line["item"] for each in run)
            )
        if "query_id" in columns:
            rows = self._with_queries(run, rows)
        return self._with_links(kind, run, rows)

    def _with_references(
        self, run: Sequence[Numbered], rows: list[Row], field: str, column: str, seq_by_name: dict[str, int]
    ) -> list[Row]:
        result = []
        for each, row in zip(run, rows, strict=True):
            name = each.line.get(field)
            if name is not None and name not in seq_by_name:
                raise damaged(each.number, f"names the {field} {quoted(name)}, which no line before it has")
            result.append(row | {column: None if name is None else seq_by_name[name]})
        return result

    def _with_queries(self, run: Sequence[Numbered], rows: list[Row]) -> list[Row]:
        pairs = [
            (row["dataset_id"], each.line["query"])
            for each, row in zip(run, rows, strict=True)
            if "query" in each.line and row["dataset_id"] is not None
        ]
        query_ids = self.numbers.queries(pairs)
        result = []
        for each, row in zip(run, rows, strict=True):
            pair = (row["dataset_id"], each.line.get("query", ""))
            if pair[1] and pair not in query_ids:
                raise damaged(each.number, f"names the query {quoted(pair[1])}, which no line before it has")
            result.append(row | {"query_id": query_ids.get(pair)})
        return result

    def _with_links(self, kind: Kind, run: Sequence[Numbered], rows: list[Row]) -> list[Row]:
        if kind.links is None or kind.renamed is None:
            return rows
        datasets = [self.numbers.datasets.get(each.line.get("dataset", ""), 0) for each in run]
        names = self.numbers.links(
            (dataset, link) for dataset, row in zip(datasets, rows, strict=True) for link in kind.links(row)
        )
        return [
            kind.renamed(row, {link: names[dataset, link] for link in kind.links(row)})
            for dataset, row in zip(datasets, rows, strict=True)
        ]

    def _check_new(self, kind: Kind, run: Sequence[Numbered]) -> None:
        """Fails if the store has one of these ids, which are of one thing only, in any project."""
        columns = kind.table.columns
        # Versions of an opinion have one id, and each has its own event.
        column = columns.get("event_id", columns.get("id"))
        if column is None or kind.name in ("project", "dataset", "query", "session"):
            return
        lines = {each.line[column.name]: each.number for each in run}
        if len(lines) < len(run):
            raise damaged(run[0].number, "or a line soon after it has an id that another line has too")
        existing = self._connection.execute(select(column).where(column.in_(list(lines))).limit(1)).scalar()
        if existing is not None:
            raise Conflict(
                f"the store has the {kind.name} {existing} of line {lines[existing]} already",
                code="id_taken",
                field="file",
                value=existing,
                remedy="Ids are unique: import it into another store; nothing was imported",
            )

    def _add_vectors(self, run: Sequence[Numbered], rows: list[Row]) -> None:
        for each, row in zip(run, rows, strict=True):
            row["vector"] = self._vector(each, must=False)
            row["model_id"] = None if row["vector"] is None else self._model

    def _project(self, run: Sequence[Numbered], rows: list[Row]) -> None:
        """Its name may be another one here."""
        values = {name: value for name, value in rows[0].items() if name != "name"}
        projects = schema.projects
        self._connection.execute(update(projects).where(projects.c.id == self.numbers.project).values(values))

    def _datasets(self, run: Sequence[Numbered], rows: list[Row]) -> None:
        table = schema.datasets
        self._insert(table, rows)
        result = self._connection.execute(
            select(table.c.name, table.c.id).where(table.c.project_id == self.numbers.project)
        )
        self.numbers.datasets = {row.name: row.id for row in result}

    def _queries(self, run: Sequence[Numbered], rows: list[Row]) -> None:
        self._add_vectors(run, rows)
        for each, row in zip(run, rows, strict=True):
            if row["digest"] != receipts.digest(row["text"]):
                raise damaged(each.number, "has the digest of another text")
        self._insert(schema.queries, rows)

    def _facts(self, run: Sequence[Numbered], rows: list[Row]) -> None:
        for row in rows:
            row["digest"] = facts.digest(row["text"], row["source"], row["metadata"])
            row["linked"] = graph.BY_WORDS
        self._insert(schema.facts, rows)
        seqs = self.numbers.facts(row["id"] for row in rows)
        self._connection.execute(
            insert(schema.vectors),
            [
                {
                    "fact_seq": seqs[row["id"]],
                    "model_id": self._model,
                    "dataset_id": row["dataset_id"],
                    "vector": self._vector(each, must=True),
                }
                for each, row in zip(run, rows, strict=True)
            ],
        )
        for dataset in {row["dataset_id"] for row in rows}:
            texts = {seqs[row["id"]]: row["text"] for row in rows if row["dataset_id"] == dataset}
            facts.retag(self._connection, dataset, list(texts))
            graph.add(self._connection, dataset, texts)
            self._connection.execute(
                insert(schema.changes),
                [{"dataset_id": dataset, "fact_seq": seq, "kind": facts.ADDED} for seq in texts],
            )
        for each, row in zip(run, rows, strict=True):
            if "entities" in each.line:
                graph.enrich(self._connection, row["dataset_id"], seqs[row["id"]], each.line["entities"])

    def _events(self, run: Sequence[Numbered], rows: list[Row]) -> None:
        ledger.append(self._connection, [Event(**row) for row in rows])

    def _sessions(self, run: Sequence[Numbered], rows: list[Row]) -> None:
        self._insert(schema.sessions, rows)
        seqs = self.numbers.sessions(row["id"] for row in rows)
        tags = [
            {"session_seq": seqs[row["id"]], "project_id": self.numbers.project, **tag}
            for row in rows
            for tag in facts.flattened(row["metadata"])
        ]
        if tags:
            self._connection.execute(insert(schema.session_tags), tags)

    def _connectors(self, run: Sequence[Numbered], rows: list[Row]) -> None:
        """Disabled, since the writer of the file chose where they lead; other rights that it names are dropped."""
        for each, row in zip(run, rows, strict=True):
            options = {name: row["options"].get(name) for name in ("role", "dialect", "sensitive_columns")}
            sensitive = options["sensitive_columns"]
            if (
                not isinstance(options["dialect"], str)
                or not isinstance(options["role"], str | None)
                or not (
                    sensitive is None or (isinstance(sensitive, list) and all(isinstance(n, str) for n in sensitive))
                )
            ):
                raise damaged(each.number, "has malformed options")
            row |= {"enabled": 0, "options": {name: value for name, value in options.items() if value is not None}}
        self._insert(schema.connectors, rows)


def _packed(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
