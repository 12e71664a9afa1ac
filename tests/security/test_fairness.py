"""One project or key takes its share of a server, and others don't notice."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from select import select as readable
from urllib.parse import urlsplit

import httpx
import pytest
from patience import until
from server import Running, running
from sqlalchemy import func, select

from heedful.interfaces.http import middleware
from heedful.interfaces.http.sharing import Shares
from heedful.storage.schema import requests

pytestmark = pytest.mark.slow


@pytest.fixture
def server(any_store: str) -> Iterator[Running]:
    with running(any_store, max_body=1_000_000) as running_server:
        yield running_server


Call = Callable[..., httpx.Response]
Caller = Callable[..., Call]


@pytest.fixture
def caller() -> Iterator[Caller]:
    """Makes calls with a key of a project's own."""
    with ExitStack() as clients:

        def made(server: Running, project: str, name: str = "caller") -> Call:
            with server.connect(project) as admin:
                key = admin.keys.create(name, scopes=["read", "write", "feedback"]).api_key
            client = httpx.Client(
                base_url=f"{server.url}/v1/projects/{project}/", headers={"Authorization": f"Bearer {key}"}, timeout=60
            )
            return clients.enter_context(client).request

        yield made


@pytest.mark.nightly
def test_a_neighbour_who_computes_keeps_nobody_waiting(server: Running, caller: Caller) -> None:
    """32 answers to attribute at once took all threads, and a look at facts came after all of them."""
    neighbour, quiet = caller(server, "neighbour"), caller(server, "quiet")
    facts = [f"Shipping to zone {place} takes {place} days and costs {place} euros." for place in range(20)]
    for each in (neighbour, quiet):
        assert each("POST", "facts", json={"texts": facts}).status_code == 200
    recalled = neighbour("POST", "recall", json={"query": "How long does shipping take?", "top_k": 20}).json()
    path = f"recalls/{recalled['recall_id']}/detect"
    answers = [" ".join(f"Zone {place + seed} takes {place} days." for place in range(400)) for seed in range(32)]
    done = threading.Semaphore(0)
    ended: list[int] = []

    def detect(answer: str) -> int:
        status = neighbour("POST", path, json={"answer": answer}).status_code
        ended.append(status)
        done.release()
        return status

    with ThreadPoolExecutor(32) as pool:
        sent = [pool.submit(detect, answer) for answer in answers]
        done.acquire()
        overtook = []
        for _ in range(5):
            before = len(ended)
            assert quiet("GET", "facts", params={"limit": 5}).status_code == 200
            overtook.append(len(ended) - before)
        statuses = {each.result() for each in sent}
    # Those that had their turn may end meanwhile, but the queue does not go first.
    assert sorted(overtook)[2] <= (os.cpu_count() or 1) + 1
    assert statuses == {200}


@pytest.mark.nightly
def test_a_second_key_of_a_project_does_not_wait_for_the_queue_of_the_first(server: Running, caller: Caller) -> None:
    nightly, page = caller(server, "shop", "nightly"), caller(server, "shop", "page")
    texts = [[f"Part {part} of {place} is blue." for part in range(200)] for place in range(24)]
    ended: list[int] = []

    def remember(batch: list[str]) -> None:
        ended.append(nightly("POST", "facts", json={"texts": batch}).status_code)

    with ThreadPoolExecutor(24) as pool:
        sent = [pool.submit(remember, batch) for batch in texts]
        while not ended:
            threading.Event().wait(0.01)
        before = len(ended)
        assert page("GET", "facts", params={"limit": 5}).status_code == 200
        overtook = len(ended) - before
        for each in sent:
            each.result()
    assert overtook <= (os.cpu_count() or 1) + 1
    assert set(ended) == {200}


def test_bodies_of_one_key_leave_memory_for_others(
    server: Running, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies that are announced and don't come take the room of their own caller."""
    monkeypatch.setattr(server.state._bodies, "_wait", 0.2)
    neighbour, quiet = caller(server, "neighbour"), caller(server, "quiet")
    text = {"texts": ["x" * 900_000]}
    with server.connect("neighbour") as admin:
        key = admin.keys.create("slow", scopes=["write"]).api_key
    address = urlsplit(server.url)
    head = (
        f"POST /v1/projects/neighbour/facts HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
    )
    with ExitStack() as opened:
        held = [opened.enter_context(socket.create_connection((address.hostname, address.port))) for _ in range(3)]
        for each in held:
            each.sendall(head.encode())
        answered, _, _ = readable(held, [], [], 20)
        (refused,) = [each.recv(65536) for each in answered]
        assert refused.startswith(b"HTTP/1.1 429")
        assert b'"server_busy"' in refused
        assert b"retry-after" in refused.lower()
        assert neighbour("POST", "facts", json=text).status_code == 200
        assert quiet("POST", "facts", json=text).status_code == 200


@pytest.mark.nightly
def test_who_is_refused_again_and_again_is_kept_waiting(
    path: Path, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals take time from others, so that they come slower after the first few."""
    monkeypatch.setattr(middleware, "REFUSALS_PER_SECOND", 0.01)
    monkeypatch.setattr(middleware, "REFUSED_SECONDS", 3.0)
    with running(path) as server:
        quiet = caller(server, "quiet")
        with httpx.Client(base_url=server.url, headers={"Authorization": "Bearer hf_wrong_key"}) as stranger:
            assert stranger.get("/v1/projects/quiet/facts").status_code == 401
            with pytest.raises(httpx.ReadTimeout):
                stranger.get("/v1/projects/quiet/facts", timeout=1.0)
        assert quiet("GET", "facts").status_code == 200


@pytest.mark.nightly
def test_refusals_that_are_kept_back_make_room_for_others(
    path: Path, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers who wait for their refusal took all connections of their address, and of all who had no key yet."""
    monkeypatch.setattr(middleware, "REFUSALS_PER_SECOND", 0.01)
    monkeypatch.setattr(middleware, "REFUSED_SECONDS", 600.0)
    with running(path, max_connections=16) as server, ExitStack() as opened:
        quiet = caller(server, "quiet")
        where = urlsplit(server.url)
        for _ in range(40):
            stranger = opened.enter_context(socket.create_connection((where.hostname, where.port)))
            stranger.sendall(b"GET /v1/projects/quiet/facts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hf_no\r\n\r\n")
        # Those whose key is being looked up can't be told from others.
        until(lambda: quiet("GET", "facts").status_code == 200)


def test_a_call_whose_caller_has_gone_is_not_begun(server: Running) -> None:
    """They went on after their caller had left, while others waited."""
    with server.connect("busy") as h:
        key = h.keys.create("program", scopes=["read", "write"]).api_key
        h.remember("Room 7 is blue.")
        shares = server.state._shares
        where = urlsplit(server.url)
        with server.state.store.database.write("busy"), ExitStack() as opened:
            for place in range(12):
                made = opened.enter_context(socket.create_connection((where.hostname, where.port)))
                body = f'{{"texts": "Room {place} is green."}}'
                made.sendall(
                    f"POST /v1/projects/busy/facts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
                )
            until(lambda: len(shares._calls) + _waiting(shares) == 12)
            begun = len(shares._calls)
            assert begun < 12
            opened.close()
            # What is heard of the others was sent before they left.
            until(lambda: httpx.get(f"{server.url}/healthz").status_code == 200)
            time.sleep(0.2)
        until(lambda: not shares._calls and not _waiting(shares))
        assert len(h.facts().items) == 1 + begun


def _waiting(shares: Shares) -> int:
    return sum(len(queue) for lane in shares._waiting.values() for queue in lane.values())


@pytest.mark.nightly
def test_answers_that_nobody_reads_take_the_share_of_their_caller(server: Running, caller: Caller) -> None:
    """One key opened many connections, asked for the largest page on each, and read nothing: gigabytes in memory."""
    quiet = caller(server, "quiet")
    with server.connect("neighbour") as admin:
        admin.remember([f"{place} " + "x" * 900 for place in range(1_000)], metadata={"note": "y" * 2_000})
        key = admin.keys.create("reader", scopes=["read"]).api_key
    address = urlsplit(server.url)
    head = (
        f"GET /v1/projects/neighbour/facts?limit=1000 HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {key}\r\n\r\n"
    )
    with ExitStack() as opened:
        statuses = []
        for _ in range(6):
            connection = opened.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.settimeout(60)
            connection.connect((address.hostname, address.port))
            connection.sendall(head.encode())
            statuses.append(connection.recv(12)[-3:])
        # The first is let through, whatever its size.
        assert statuses == [b"200"] + [b"429"] * 5
        assert quiet("GET", "facts").status_code == 200


def test_reading_keeps_nothing_on_disk(server: Running, caller: Caller) -> None:
    """An answer was kept for a week with each key for repeating, whoever asked."""
    neighbour = caller(server, "neighbour")
    assert neighbour("POST", "facts", json={"texts": ["Ada leads."]}).status_code == 200
    with server.state.store.database.read() as connection:
        before = connection.execute(select(func.count()).select_from(requests)).scalar_one()
    for place in range(3):
        headers = {"Idempotency-Key": f"again-{place}"}
        assert neighbour("POST", "recall", json={"query": "Who leads?"}, headers=headers).status_code == 200
    with server.state.store.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(requests)).scalar_one() == before


def test_authentication_does_not_wait_for_a_writer(path: Path, caller: Caller) -> None:
    """Noting when a key was last used waited for the lock of the store, and so did everybody who showed a key."""
    with running(path) as server:
        quiet = caller(server, "quiet")
        assert quiet("GET", "facts").status_code == 200
        server.state.callers._noted.clear()
        with server.state.store.database.write():
            server.state.callers._cache.clear()
            assert quiet("GET", "facts").status_code == 200
