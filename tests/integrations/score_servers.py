"""Servers with the scores of other systems, in their own words: as their clients read and write them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, HTTPException, Query, Request, Response

Row = dict[str, Any]


def now() -> str:
    return datetime.now(UTC).isoformat()


@dataclass
class Server:
    """One that runs; `rows` are its scores by id."""

    url: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    """Methods of those that wrote."""
    down: bool = False
    can_find_runs: bool = True
    """Whether LangSmith can find a run without its project, as it could before SmithDB."""


PROJECT = "9d3c1a4e-1f0b-4c0e-9a3e-2f1f5a1c7e10"
"""The id of the project `agents` of LangSmith."""


@contextmanager
def serving(build: Callable[[Server], FastAPI]) -> Iterator[Server]:
    server = Server()
    app = build(server)

    @app.middleware("http")
    async def watch(request: Request, call_next: Any) -> Any:
        if request.method != "GET":
            server.requests.append(request.method)
        return Response(status_code=503) if server.down else await call_next(request)

    started = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off"))
    ready = threading.Event()

    async def serve() -> None:
        task = asyncio.create_task(started.serve())
        while not started.started:
            await asyncio.sleep(0.01)
        ready.set()
        await task

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(20)
    server.url = f"http://127.0.0.1:{started.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        started.should_exit = True
        thread.join(10)


def langfuse(server: Server) -> FastAPI:
    app = FastAPI()

    def check(request: Request) -> None:
        if not request.headers.get("authorization", "").startswith("Basic "):
            raise HTTPException(401)

    @app.get("/api/public/v3/scores")
    def listed(
        request: Request,
        limit: int = 50,
        cursor: str | None = None,
        name: str | None = None,
        fields: str = "",
        fromTimestamp: datetime | None = None,  # noqa: N803
    ) -> Row:
        check(request)
        rows = [row for row in server.rows.values() if name is None or row["name"] in name.split(",")]
        if fromTimestamp is not None:
            rows = [row for row in rows if datetime.fromisoformat(row["timestamp"]) >= fromTimestamp]
        start = int(cursor or 0)
        groups = {"details": ("comment", "metadata"), "subject": ("subject",), "annotation": ("authorUserId",)}
        hidden = {each for group, names in groups.items() if group not in fields.split(",") for each in names}
        # Small pages, so that there are several.
        page = [{key: row[key] for key in row if key not in hidden} for row in rows[start : start + min(limit, 2)]]
        meta: Row = {"limit": limit}
        if start + len(page) < len(rows):
            meta["cursor"] = str(start + len(page))
        return {"data": page, "meta": meta}

    @app.post("/api/public/scores", status_code=202)
    async def created(request: Request) -> Row:
        check(request)
        for new in await request.json():
            key = new.get("id") or str(uuid4())
            value, kind = new["value"], new.get("dataType") or "NUMERIC"
            server.rows[key] = {
                "id": key,
                "projectId": "p",
                "name": new["name"],
                "value": bool(value) if kind == "BOOLEAN" else value,
                "dataType": kind,
                "source": new.get("source") or "API",
                "timestamp": new.get("timestamp") or now(),
                "environment": "default",
                "createdAt": now(),
                "updatedAt": now(),
                "comment": new.get("comment"),
                "metadata": new.get("metadata"),
                "authorUserId": new.get("authorUserId"),
                "subject": {"kind": "trace", "id": new["traceId"]},
            }
        return {"message": "Accepted"}

    @app.delete("/api/public/scores/{key}", status_code=202)
    def deleted(request: Request, key: str) -> Row:
        check(request)
        if server.rows.pop(key, None) is None:
            raise HTTPException(404)
        return {"message": "deleted"}

    return app


def _langsmith_runs(app: FastAPI, server: Server) -> None:
    @app.get("/info")
    def info() -> Row:
        flags = {"ch_query_enabled": server.can_find_runs, "sdb_query_enabled": True}
        return {
            "version": "0.16.0",
            "batch_ingest_config": {"use_multipart_endpoint": False},
            "instance_flags": flags,
        }

    @app.get("/sessions")
    def projects(name: str) -> list[Row]:
        return [{"id": PROJECT, "name": name}] if name == "agents" else []

    @app.get("/runs/{key}")
    def run(key: str) -> Row:
        if not server.can_find_runs:
            raise HTTPException(404)
        return {"id": key, "session_id": PROJECT, "trace_id": key, "start_time": now()}


def langsmith(server: Server) -> FastAPI:
    app = FastAPI()

    def check(request: Request) -> None:
        if not request.headers.get("x-api-key"):
            raise HTTPException(401)

    _langsmith_runs(app, server)

    @app.get("/feedback")
    def listed(
        request: Request,
        limit: int = 100,
        offset: int = 0,
        key: list[str] | None = Query(None),  # noqa: B008
    ) -> list[Row]:
        check(request)
        rows = [row for row in server.rows.values() if key is None or row["key"] in key]
        return rows[offset : offset + limit]

    @app.post("/feedback")
    async def created(request: Request) -> Row:
        check(request)
        new = await request.json()
        # As it will be.
        if new.get("session_id") != PROJECT:
            raise HTTPException(422, "session_id is required")
        empty = {"score": None, "value": None, "comment": None, "correction": None, "trace_id": None}
        row = {**empty, "created_at": now(), "modified_at": now(), **new}
        if row["id"] in server.rows:
            raise HTTPException(409)
        server.rows[row["id"]] = row
        return row

    @app.patch("/feedback/{key}")
    async def changed(request: Request, key: str) -> Row:
        check(request)
        server.rows[key] |= {**(await request.json()), "modified_at": now()}
        return server.rows[key]

    @app.delete("/feedback/{key}")
    def deleted(request: Request, key: str) -> Row:
        check(request)
        if server.rows.pop(key, None) is None:
            raise HTTPException(404)
        return {}

    return app


def phoenix(server: Server) -> FastAPI:
    app = FastAPI()
    for kind in ("trace", "span"):
        _annotations(app, server, kind)
    return app


def _annotations(app: FastAPI, server: Server, kind: str) -> None:
    @app.get(f"/v1/projects/{{project}}/{kind}_annotations")
    def listed(
        project: str,
        ids: list[str] = Query(min_length=1, alias=f"{kind}_ids"),  # noqa: B008
        include_annotation_names: list[str] | None = Query(None),  # noqa: B008
        cursor: str | None = None,
        limit: int = 10,
    ) -> Row:
        rows = [
            row
            for row in server.rows.values()
            if row.get(f"{kind}_id") in ids
            and (include_annotation_names is None or row["name"] in include_annotation_names)
        ]
        start = int(cursor or 0)
        page = rows[start : start + min(limit, 2)]
        end = start + len(page)
        return {"data": page, "next_cursor": str(end) if end < len(rows) else None}

    @app.post(f"/v1/{kind}_annotations")
    async def created(request: Request) -> Row:
        inserted = []
        for new in (await request.json())["data"]:
            # One of the same name and identifier about the same trace is replaced.
            key = f"{new[f'{kind}_id']}/{new['name']}/{new.get('identifier', '')}"
            about = {"id": key, "created_at": now(), "updated_at": now(), "source": "API", "user_id": None}
            server.rows[key] = {"identifier": "", "metadata": {}, "result": {}, **about, **new}
            inserted.append({"id": key})
        return {"data": inserted}

    @app.delete(f"/v1/projects/{{project}}/{kind}_annotations", status_code=204, response_model=None)
    def deleted(project: str, name: str | None = None, identifier: str | None = None, delete_all: bool = False) -> None:
        if not delete_all:
            raise HTTPException(422)
        for key, row in list(server.rows.items()):
            if f"{kind}_id" in row and name in (None, row["name"]) and identifier in (None, row["identifier"]):
                del server.rows[key]
