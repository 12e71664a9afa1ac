"""Metrics, and spans for OpenTelemetry if an exporter is configured; otherwise none are made or sent."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.errors import Unavailable
from heedful.version import __version__

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def provider() -> Any:
    """What makes spans and sends them; None where nobody has asked for them. It is shut down when the server stops."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise Unavailable(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and tracing needs an extra",
            code="extra_missing",
            remedy='Run: pip install "heedful[telemetry]"',
        ) from error
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "heedful")})
    tracer_provider = TracerProvider(resource=resource)
    tracer_provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return tracer_provider


class Tracing:
    """A span for each request, under that of the caller if there is one. Nothing of what was said is in it."""

    def __init__(self, app: ASGIApp, provider: Any) -> None:
        self._app = app
        self._tracer = provider.get_tracer("heedful", __version__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, StatusCode

        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.start_as_current_span(
            scope["method"], context=extract(carrier), kind=SpanKind.SERVER
        ) as span:

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            try:
                await self._app(scope, receive, sending)
            finally:
                route = scope.get("heedful.route", "other")
                span.update_name(f"{scope['method']} {route}")
                span.set_attribute("http.request.method", scope["method"])
                span.set_attribute("http.route", route)
                span.set_attribute("heedful.request_id", scope.get("heedful.request_id", ""))


SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Where workers write their metrics, so that any of them can report those of all."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Measures:
    """The numbers of one worker."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "heedful_requests_total",
            "Requests by route and status.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "heedful_request_seconds",
            "How long requests take.",
            ("method", "route"),
            registry=self._registry,
            buckets=BUCKETS,
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts one request."""
        method = method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS") else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> bytes:
        """All numbers of all workers, in Prometheus's own words."""
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
