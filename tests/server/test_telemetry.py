"""Spans go where the environment says, and nowhere else; numbers are told to those who ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from server import running

from heedful.errors import NotFound


class Collector:
    """Something that takes what OTLP exporters send, and keeps it."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_a_span_for_each_request_arrives(path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    parent = "4bf92f3577b34da6a3ce929d0e0e4736"
    with running(path) as server, server.connect() as h:
        h.remember("The password is hunter2.")
        with pytest.raises(NotFound):
            h.sessions.get("a secret name")
        url = f"{server.url}/v1/projects/default/datasets?"
        headers = {"Authorization": f"Bearer {server.key}", "traceparent": f"00-{parent}-00f067aa0ba902b7-01"}
        httpx.get(url, headers={**headers, "X-Request-Id": "mine"}).raise_for_status()
    # The server has stopped, and kept nothing back.
    assert {where for where, _ in collector.received} == {"/v1/traces"}
    spans: dict[str, Any] = {}
    for _, body in collector.received:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            assert {each.key: each.value.string_value for each in resource.resource.attributes}[
                "service.name"
            ] == "heedful"
            spans |= {span.name: span for scope in resource.scope_spans for span in scope.spans}
    assert set(spans) == {
        "POST /v1/projects/{project}/facts",
        "GET /v1/projects/{project}/sessions/{session_id}",
        "GET /v1/projects/{project}/datasets",
    }
    got = spans["GET /v1/projects/{project}/datasets"]
    assert got.trace_id.hex() == parent
    about = {each.key: each.value for each in got.attributes}
    assert about["http.response.status_code"].int_value == 200
    assert about["heedful.request_id"].string_value == "mine"
    sent = b"".join(body for _, body in collector.received)
    for secret in (b"hunter2", b"a secret name", server.key.encode()):
        assert secret not in sent


def test_nothing_is_sent_where_nobody_asked(path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "x")
    with running(path) as server, server.connect() as h:
        h.datasets()
    assert collector.received == []


def test_a_collector_that_is_gone_holds_up_nobody(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with running(path) as server, server.connect() as h:
        assert h.datasets() == []


def test_numbers_for_prometheus(path: Path) -> None:
    with running(path) as server, server.connect() as h:
        h.remember("Ada is the CEO.", dataset="a-dataset")
        for _ in range(3):
            h.recall("Who is the CEO?", dataset="a-dataset")
        key = {"Authorization": f"Bearer {server.key}"}
        with httpx.Client(base_url=server.url) as http:
            for path_of_nobody in ("/nothing/1", "/nothing/2"):
                http.get(path_of_nobody)
            http.request("PROPFIND", "/v1/projects")
            assert http.get("/metrics").status_code == 401
            answer = http.get("/metrics", headers=key)
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        text = answer.text
        assert 'heedful_requests_total{method="POST",route="/v1/projects/{project}/recall",status="200"} 3.0' in text
        assert 'heedful_requests_total{method="GET",route="other",status="404"} 2.0' in text
        assert 'heedful_requests_total{method="other",route="/v1/projects",status="405"} 1.0' in text
        assert 'heedful_requests_total{method="GET",route="/metrics",status="401"} 1.0' in text
        assert 'heedful_request_seconds_count{method="POST",route="/v1/projects/{project}/recall"} 3.0' in text
        for secret in ("a-dataset", "Ada", server.key):
            assert secret not in text


def test_health_needs_no_key_and_tells_nothing(path: Path) -> None:
    with running(path) as server:
        assert httpx.get(f"{server.url}/healthz").json() == {"status": "ok"}
        assert httpx.get(f"{server.url}/readyz").json() == {"status": "ready"}
        server.state.store.database.close()
        missing = httpx.get(f"{server.url}/readyz")
        assert missing.status_code == 503
        assert httpx.get(f"{server.url}/healthz").status_code == 200
