"""Bytes that no client of ours sends: each gets an answer that says what is wrong, and the server goes on."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grids
import httpx
import orjson
import pytest
from server import Running, running

import heedful
from heedful.api import CALLS
from heedful.compat.foreign_api import ForeignRoute
from heedful.interfaces.http.calls import PREFIX
from heedful.interfaces.http.foreign_routes import FOREIGN_APIS

NAMES = (
    *("text", "texts", "query", "question", "name", "content", "items", "messages", "role", "session_id", "dataset_id"),
    *("feedback", "feedback_text", "feedback_score", "rating", "is_positive", "execution_id", "chat_message_id"),
    *(
        "limit",
        "top_k",
        "max_tokens",
        "sql_query",
        "metadata",
        "tags",
        "datasetName",
        "data",
        "id",
        "project_id",
        "score",
    ),
)
"""Names of fields that clients of other systems send."""

FIELDS = {"type", "title", "status", "detail", "code", "field", "value", "remedy", "request_id"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("hostile") / "store.db", max_body=1_000_000) as found, found.connect() as h:
        h.remember("Ada is the CEO.")
        h.sessions.create("s")
        yield found


@pytest.fixture(scope="module")
def http(server: Running) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {server.key}"}
    with httpx.Client(base_url=f"{server.url}/v1/projects/default", headers=headers) as client:
        yield client


@pytest.fixture(autouse=True)
def goes_on(server: Running) -> Iterator[None]:
    """After each test, the server answers; during it, nothing that is secret or a fault is logged."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logging.Formatter().format(record))

    kept = Kept()
    logger = logging.getLogger()
    level = logger.level
    logger.addHandler(kept)
    logger.setLevel(logging.INFO)
    try:
        yield
        assert b"200 OK" in raw(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    finally:
        logger.removeHandler(kept)
        logger.setLevel(level)
    logged = "\n".join(lines)
    assert server.key not in logged
    assert "hunter2" not in logged
    assert "fault in request" not in logged
    assert "Traceback" not in logged


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The document of an error, which is complete."""
    found: dict[str, Any] = answer.json()
    assert (answer.status_code, found["code"]) == (status, code), found
    assert set(found) == FIELDS
    assert answer.headers["content-type"] == "application/problem+json"
    assert found["status"] == status
    assert found["request_id"] == answer.headers["x-request-id"]
    assert len(answer.content) < 10_000
    return found


def raw(server: Running, sent: bytes, timeout: float = 5) -> bytes:
    """What comes back for bytes."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        connection.sendall(sent)
        return _all(connection)


def _all(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except (TimeoutError, ConnectionResetError):
        pass
    return b"".join(parts)


def head(server: Running, line: str, *headers: str) -> bytes:
    """The head of a request with the right key."""
    items = ["Host: x", f"Authorization: Bearer {server.key}", *headers]
    return f"{line} HTTP/1.1\r\n".encode("latin-1") + "\r\n".join([*items, "", ""]).encode("latin-1")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "invalid"),
        (b"{", 400, "malformed"),
        (b"null", 400, "malformed"),
        (b"[]", 400, "malformed"),
        (b"3", 400, "malformed"),
        (b'"query"', 400, "malformed"),
        (b"\xff\xfe", 400, "malformed"),
        (b'{"query": "\xff"}', 400, "malformed"),
        (b'{"query": "\\ud800"}', 400, "malformed"),
        (b'{"query": "a\\u0000b"}', 422, "invalid"),
        (b'{"query": "a\x00b"}', 400, "malformed"),
        (b'{"query": 3}', 422, "invalid"),
        (b'{"query": ["a"]}', 422, "invalid"),
        (b'{"query": null}', 422, "invalid"),
        (b'{"query": "  "}', 422, "invalid"),
        (b'{"query": "a", "top_k": "3"}', 422, "invalid"),
        (b'{"query": "a", "top_k": 1e400}', 422, "invalid"),
        (b'{"query": "a", "top_k": 99999999999999999999999999}', 422, "invalid"),
        (b'{"query": "a", "usefulness_weight": NaN}', 422, "invalid"),
        (b'{"query": "a", "explain": 1}', 422, "invalid"),
        (b'{"query": "a", "where": {"n": 99999999999999999999999999}}', 422, "invalid"),
        (b'{"query": "a", "where": {"n": Infinity}}', 422, "invalid"),
        (b'{"query": "a", "nope": 1}', 422, "invalid"),
        (b'{"query": "a", "__class__": 1}', 422, "invalid"),
        (b'{"query": "a", "on_token": "print"}', 422, "invalid"),
        (b'{"query": "%s"}' % (b"a" * 10_001), 422, "invalid"),
        (b'{"query": "%s"}' % (b" " * 500_000), 422, "invalid"),
        (b'{"query": "a", "where": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001, 400, "malformed"),
        (b'{"query": "a", "where": {"a": ' + b"[" * 10_000 + b"]" * 10_000 + b"}}", 400, "malformed"),
        (b"[" * 30_000, 400, "malformed"),
        (b"[" * 900_000, 413, "body_too_large"),
    ],
)
def test_bodies_that_cant_be_accepted(http: httpx.Client, body: bytes, status: int, code: str) -> None:
    refused(http.post("/recall", content=body, headers={"Content-Type": "application/json"}), status, code)


@pytest.mark.parametrize(("depth", "status"), [(50, 200), (100, 200), (101, 422), (190, 422), (300, 400)])
def test_what_is_deep_comes_back_whole_or_is_refused(
    server: Running, http: httpx.Client, depth: int, status: int
) -> None:
    body = b'{"metadata": {"deep": ' + b"[" * depth + b"]" * depth + b"}}"
    assert http.patch("/sessions/s/metadata", content=body).status_code == status
    with server.connect() as h:
        assert ("deep" in h.sessions.get("s").metadata) == (status == 200)
        assert h.sessions.list().items
    http.delete("/sessions/s/metadata", params={"keys": "deep"}).raise_for_status()


def test_a_body_that_is_too_large_is_not_read(server: Running, http: httpx.Client) -> None:
    refused(http.post("/recall", content=b" " * 1_000_001), 413, "body_too_large")
    # Said to be large: refused before it is sent.
    told = raw(server, head(server, "POST /v1/projects/default/recall", "Content-Length: 99999999999999"), timeout=1)
    assert b" 413 " in told
    endless = head(server, "POST /v1/projects/default/recall", "Transfer-Encoding: chunked")
    endless += (b"10000\r\n" + b" " * 0x10000 + b"\r\n") * 20
    assert b" 413 " in raw(server, endless, timeout=1)


def test_a_key_is_asked_for_before_a_body_is_read(server: Running) -> None:
    url = f"{server.url}/v1/projects/default/recall"
    refused(httpx.post(url, content=b" " * 1_000_001), 401, "key_missing")


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x"])
def test_other_media_types_are_refused(http: httpx.Client, kind: str) -> None:
    refused(http.post("/recall", content=b'{"query": "a"}', headers={"Content-Type": kind}), 415, "media_type")


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"]
)
def test_json_by_its_other_names_is_read(http: httpx.Client, kind: str) -> None:
    assert http.post("/recall", content=b'{"query": "a"}', headers={"Content-Type": kind}).status_code == 200


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("limit=1&limit=2", 422, "invalid"),
        ("nope=1", 422, "invalid"),
        ("limit=", 422, "invalid"),
        ("limit=0", 422, "invalid"),
        ("limit=1e9", 422, "invalid"),
        ("limit=%00", 422, "invalid"),
        ("cursor=%ff", 400, "malformed"),
        ("cursor=%ed%a0%80", 400, "malformed"),
        ("cursor=-1", 422, "invalid"),
        ("cursor=99999999999999999999", 422, "invalid"),
        ("where=%7B", 422, "invalid"),
        ("where=3", 422, "invalid"),
        ("where=" + "%5B" * 2000, 422, "invalid"),
        ("&".join(f"a{n}=1" for n in range(1001)), 400, "malformed"),
    ],
)
def test_queries_that_cant_be_accepted(http: httpx.Client, query: str, status: int, code: str) -> None:
    refused(http.get(f"/sessions?{query}"), status, code)


def test_a_query_that_is_too_long(server: Running) -> None:
    long = "cursor=" + "1" * 65_530
    answer = raw(server, head(server, f"GET /v1/projects/default/sessions?{long}", "Connection: close"))
    assert b" 400 " in answer.partition(b"\r\n")[0]


def test_parameters_stand_where_they_belong(http: httpx.Client) -> None:
    refused(http.post("/recall?query=a", json={}), 422, "invalid")
    refused(http.request("GET", "/sessions", content=b'{"limit": 3}'), 400, "malformed")
    refused(http.request("DELETE", "/sessions/s/metadata", content=b'{"keys": ["a"]}'), 400, "malformed")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/projects/default/sessions/..%2f..%2fkeys",
        "/v1/projects/default/sessions/%2e%2e/keys",
        "/v1/projects/default/../default/keys/../../keys",
        "/v1/projects/default/sessions/s/",
        "//v1/projects/default/datasets",
        "/v1/projects/default//datasets",
        "/v1//projects",
        "/v1/projects/",
        "/v1/projects/default/sessions/%ff",
        "/v1/projects/default/sessions/%",
        "/v1/projects/default/facts/%ed%a0%80/stats",
        "/v1/projects/default/facts/" + "a" * 6_000 + "/stats",
        "/v1/projects/default/sessions/a;b=c",
        "/V1/PROJECTS/default/datasets",
        "/docs/",
        "/docs/../openapi.json",
        "/redoc",
        "//",
    ],
)
def test_paths_lead_nowhere_else(server: Running, path: str) -> None:
    answer = raw(server, head(server, f"GET {path}", "Connection: close"))
    status, _, rest = answer.partition(b"\r\n")
    assert b" 404 " in status, answer[:300]
    found = orjson.loads(rest.partition(b"\r\n\r\n")[2])
    assert set(found) == FIELDS


@pytest.mark.parametrize("path", ["/v1/projects/default/sessions/%00", "/v1/projects/%20/datasets"])
def test_names_that_cant_be(server: Running, path: str) -> None:
    answer = raw(server, head(server, f"GET {path}", "Connection: close"))
    assert b" 422 " in answer.partition(b"\r\n")[0]


@pytest.mark.slow
def test_ids_may_hold_any_text(server: Running) -> None:
    with server.connect() as h:
        for name in ("a/b", "..", ".", "ä ö?#&%2F", "日本語", "a+b", "a%00", "x" * 200):
            h.sessions.create(name)
            assert h.sessions.get(name).session_id == name
            assert h.sessions.delete(name).session_id == name


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /v1/projects HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"POST /v1/projects HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/projects HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
        b"POST /v1/projects HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\nContent-Length: 3\r\n\r\nabc",
        b"GET /v1/projects HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET /v1/projects HTTP/1.1\r\nHost: x\r\n Folded: y\r\n\r\n",
        b"GET / v1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/projects HTTP/9.9\r\nHost: x\r\n\r\n",
        b"\r\n\r\n\r\n\x00\x00\x00",
    ],
)
def test_what_is_not_http_is_not_guessed_at(server: Running, sent: bytes) -> None:
    answer = raw(server, sent, timeout=1)
    assert answer.startswith(b"HTTP/1.1 4") or not answer
    assert answer.count(b"HTTP/1.1 ") <= 1


def test_a_second_request_cant_hide_in_the_first(server: Running) -> None:
    hidden = b"GET /v1/projects/default/keys HTTP/1.1\r\nHost: x\r\n\r\n"
    both = f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked".split("\r\n")
    answer = raw(server, head(server, "POST /v1/projects/default/recall", *both) + b"0\r\n\r\n" + hidden, timeout=1)
    assert b" 200 " not in answer
    assert answer.count(b"HTTP/1.1 ") <= 1


@pytest.mark.parametrize("method", ["OPTIONS *", "CONNECT x:1", "TRACE /v1/projects", "PROPFIND /v1/projects", "GET *"])
def test_other_methods_are_refused(server: Running, method: str) -> None:
    answer = raw(server, head(server, method, "Connection: close"), timeout=1)
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 405", b"HTTP/1.1 400"))


def test_every_path_says_what_it_allows(server: Running, http: httpx.Client) -> None:
    allowed: dict[str, set[str]] = {}
    for operation in CALLS.values():
        methods = {operation.method} | ({"HEAD"} if operation.method == "GET" else set())
        allowed.setdefault(PREFIX + operation.path, set()).update(methods)
    for path, methods in allowed.items():
        url = server.url + path.replace("{project}", "default").replace("{", "").replace("}", "")
        answer = http.request("OPTIONS", url)
        found = refused(answer, 405, "method")
        assert set(answer.headers["allow"].split(", ")) == methods
        assert all(method in found["remedy"] for method in methods)


def test_heads_are_those_of_the_bodies_they_leave_out(http: httpx.Client) -> None:
    for path in ("/sessions", "/datasets", "/sessions/s/metadata", "/sessions/unknown"):
        got, headed = http.get(path), http.head(path)
        assert headed.status_code == got.status_code
        assert headed.content == b""
        assert headed.headers.get("etag") == got.headers.get("etag")
        assert headed.headers["content-type"] == got.headers["content-type"]


def test_a_request_keeps_its_id_if_it_is_a_sane_one(http: httpx.Client) -> None:
    assert http.get("/datasets", headers={"X-Request-Id": "abc.1-2_3"}).headers["x-request-id"] == "abc.1-2_3"
    for odd in ("a b", "a\tb", "x" * 101, "", "<script>", "ü"):
        made = http.get("/datasets", headers={b"X-Request-Id": odd.encode()}).headers["x-request-id"]
        assert made != odd
        assert len(made) == 36


@pytest.mark.parametrize(
    "header", ["Authorization", "X-Api-Key", "Idempotency-Key", "If-Match", "Accept", "Content-Type"]
)
@pytest.mark.parametrize("value", [b"\xff\xfe", "日本語".encode(), b"x" * 8_000, b"Bearer", b"", b"a,b"])
def test_headers_of_any_kind_get_an_answer(server: Running, http: httpx.Client, header: str, value: bytes) -> None:
    key = {} if header in ("Authorization", "X-Api-Key") else {"Authorization": f"Bearer {server.key}".encode()}
    with httpx.Client(base_url=http.base_url) as other:
        for method, path, body in (("PATCH", "/sessions/s/metadata", b'{"metadata": {}}'), ("GET", "/datasets", b"")):
            sent = {b"content-type": b"application/json"} | {name.encode(): given for name, given in key.items()}
            sent = {name: given for name, given in sent.items() if name.lower() != header.lower().encode()}
            answer = other.request(method, path, content=body, headers={**sent, header.encode(): value})
            assert answer.status_code < 500
            assert answer.headers["content-type"] in ("application/json", "application/problem+json")


def test_secrets_of_connectors_are_not_logged_or_told(http: httpx.Client) -> None:
    url = "postgresql://ada:hunter2@127.0.0.1:1/db"
    for body in ({"name": "x", "url": url}, {"name": "x", "url": url, "nope": 1}, {"name": "", "url": url}):
        answer = http.post("/connectors", json=body)
        assert answer.status_code >= 400
        assert "hunter2" not in answer.text


def test_what_is_unknown_is_told_with_what_is_known(server: Running, http: httpx.Client) -> None:
    root = httpx.get(server.url).json()
    assert root == {
        "name": "heedful",
        "version": heedful.__version__,
        "openapi": "/openapi.json",
        "docs": "/docs",
    }
    nowhere = httpx.get(f"{server.url}/nowhere").json()
    assert (nowhere["code"], nowhere["remedy"]) == ("no_route", "All routes: /openapi.json")
    unknown = http.post("/recall", json={"query": "a", "zzz": 1}).json()
    assert (unknown["field"], unknown["detail"]) == ("zzz", "zzz is not a parameter of this call")
    assert unknown["remedy"].startswith("Its parameters are query, ")
    none = http.get("/datasets?zzz=1").json()
    assert (none["field"], none["remedy"]) == ("zzz", "Leave it out: there are none")
    signal = {"fact_id": "a", "signal_type": "used", "query": "a", "z-z": 1}
    inside = http.post("/signals", json={"signals": [signal]}).json()
    assert (inside["field"], inside["detail"]) == ("signals[0].z-z", "signals[0].z-z is not a field of it")


ROUTES = [(module.__name__.split(".")[2], route) for module in FOREIGN_APIS for route in module.ROUTES]


@pytest.mark.parametrize(("module", "route"), ROUTES, ids=lambda each: getattr(each, "path", each))
@pytest.mark.nightly
def test_routes_of_other_systems_are_as_hard(
    server: Running, http: httpx.Client, module: str, route: ForeignRoute
) -> None:
    path = route.path.replace("{", "").replace("}", "")
    nobody = raw(server, f"{route.method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert nobody.startswith((b"HTTP/1.1 401", b"HTTP/1.1 403")), nobody
    json = {"Content-Type": "application/json"}
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    sent: list[tuple[dict[str, str], bytes]] = [
        *((json, each) for each in (b"", b"{", b"null", b"[]", b"[1]", b"3", b'"a"', b"{}", b"\xff", b"[" * 5000)),
        (json, orjson.dumps(dict.fromkeys(NAMES, "a\0b"))),
        (json, orjson.dumps(dict.fromkeys(NAMES, -1))),
        (json, orjson.dumps({name: [None] for name in NAMES})),
        (json, orjson.dumps({name: {"a": 1} for name in NAMES})),
        (json, orjson.dumps(dict.fromkeys(NAMES))),
        *(
            (form, each)
            for each in (b"", b"--x\r\n", b"--x\r\nContent-Disposition: form-data\r\n\r\n\xff\r\n--x--\r\n")
        ),
    ]
    places = (path, path.replace("_id", "_%00"), f"{path}?limit=a&limit=-1&skip=%00&offset=1e9&q=%ff")
    # What is wrong with an address is found whatever is sent there, and the other way round.
    asked = [(place, *each) for place in places for each in (sent if grids.WHOLE or place == path else sent[7:9])]
    for place, headers, body in asked:
        answer = http.request(route.method, server.url + place, headers=headers, content=body)
        assert answer.status_code != 500, (place, body[:100], answer.text)
        assert answer.headers.get("content-type", "application/json").startswith("application/")


def test_a_slow_client_holds_up_nobody(server: Running, http: httpx.Client) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(40)]
    try:
        for each in slow[:20]:
            each.sendall(head(server, "POST /v1/projects/default/recall", "Content-Length: 100") + b"{")
        for each in slow[20:]:
            each.sendall(b"GET /v1/projects HTTP/1.1\r\nHos")
        assert http.get("/datasets").status_code == 200
    finally:
        for each in slow:
            each.close()


def test_a_client_that_leaves_half_way_has_said_nothing(server: Running, http: httpx.Client) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    body = orjson.dumps({"texts": ["Half of this was sent."], "dataset": "half"})
    for cut in (0, 1, len(body) - 1):
        with closing(socket.create_connection((host, int(port)))) as connection:
            connection.sendall(head(server, "POST /v1/projects/default/facts", f"Content-Length: {len(body)}"))
            connection.sendall(body[:cut])
    assert "half" not in http.get("/datasets").json()
    assert server.state.store._users == {}


@pytest.mark.slow
def test_a_client_that_leaves_before_the_answer_has_said_it(server: Running, http: httpx.Client) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    body = orjson.dumps({"texts": [f"Fact {number}." for number in range(300)], "dataset": "left"})
    for accept in ("application/json", "text/event-stream"):
        length = f"Content-Length: {len(body)}"
        with closing(socket.create_connection((host, int(port)))) as connection:
            connection.sendall(head(server, "POST /v1/projects/default/facts", length, f"Accept: {accept}") + body)
            if accept == "text/event-stream":
                connection.recv(10)
    _until(lambda: "left" in http.get("/datasets").json() and server.state.store._users == {})
    assert http.get("/stats/usefulness", params={"dataset": "left"}).status_code == 200
    assert http.post("/facts", json={"texts": "Fact 7.", "dataset": "left"}).json()["facts"][0]["new"] is False


@pytest.mark.slow
def test_many_hostile_clients_at_once(server: Running, http: httpx.Client) -> None:
    sent = [
        head(server, "POST /v1/projects/default/recall", "Content-Length: 14") + b'{"query": "a"}',
        head(server, "POST /v1/projects/default/recall", "Content-Length: 5") + b"[[[[[",
        b"\x00" * 1000,
        head(server, "GET /v1/projects/default/sessions?limit=a"),
    ]
    threads = [threading.Thread(target=raw, args=(server, each, 0.5)) for each in sent * 8]
    for each in threads:
        each.start()
    assert http.get("/datasets").status_code == 200
    for each in threads:
        each.join()


def test_pages_of_other_origins_may_not_call_unless_they_are_named(
    server: Running, http: httpx.Client, path: Path
) -> None:
    parameters = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    preflight = http.options("/recall", headers=parameters)
    assert preflight.status_code == 405
    assert not any(name.startswith("access-control") for name in preflight.headers)
    assert "access-control-allow-origin" not in http.get("/datasets", headers=parameters).headers
    with running(path, cors_origins=["https://app.example"]) as open_one:
        url = f"{open_one.url}/v1/projects/default/recall"
        allowed = httpx.options(
            url, headers={**parameters, "Access-Control-Request-Headers": "authorization,idempotency-key"}
        )
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        assert "access-control-allow-credentials" not in allowed.headers
        reply = httpx.post(url, headers={"Origin": "https://app.example"})
        assert reply.status_code == 401
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        other = httpx.options(url, headers={**parameters, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


def _until(done: Any, seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        time.sleep(0.02)
