"""A load on a server: requests that are ready, sent over kept connections by a process of its own.

It is written on bare sockets, so that the one who measures takes as little of the machine as can be.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import uvloop


@dataclass(frozen=True, slots=True)
class Load:
    """What came of a load."""

    seconds: float
    milliseconds: list[float]
    """How long each request took."""
    statuses: dict[str, int]
    """How many answers had each status; those without one were "closed"."""

    @property
    def failures(self) -> int:
        return sum(count for status, count in self.statuses.items() if not status.startswith("2"))

    @property
    def rate(self) -> float:
        return len(self.milliseconds) / self.seconds


def request(method: str, path: str, key: str, body: object) -> bytes:
    """One request as it goes over the wire; None is no body."""
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def send(
    port: int,
    requests: Sequence[bytes],
    connections: int,
    seconds: float,
    most: float | None = None,
    *,
    stubborn: bool = False,
    address: str = "127.0.0.1",
) -> Load:
    """Sends requests in turn over so many connections from an address for so long, at `most` so many a second; whoever
    is `stubborn` connects again when it is thrown out."""
    times: list[float] = []
    counts: Counter[str] = Counter()
    place = 0
    until = time.perf_counter() + seconds

    async def connection() -> None:
        while time.perf_counter() < until:
            try:
                await conversation(*await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)))
            except (OSError, EOFError, RuntimeError):
                if not stubborn:
                    raise
                # A neighbour who means harm comes back at once.
                counts["closed"] += 1
                await asyncio.sleep(0.01)

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal place
        while (started := time.perf_counter()) < until:
            writer.write(requests[place % len(requests)])
            place += 1
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
            await reader.readexactly(length)
            times.append((time.perf_counter() - started) * 1000)
            counts[head[9:12].decode()] += 1
            if most is not None:
                await asyncio.sleep(max(0.0, connections / most - (time.perf_counter() - started)))
        writer.close()

    started = time.perf_counter()
    running = [asyncio.ensure_future(connection()) for _ in range(connections)]
    if stubborn:
        # Answers that are still to come are nobody's concern.
        await asyncio.wait(running, timeout=seconds if most is None else seconds + 60)
        for each in running:
            each.cancel()
    else:
        await asyncio.gather(*running)
    return Load(time.perf_counter() - started, times, dict(counts))


def main() -> None:
    """Reads what to do as JSON from standard input, and writes what came of it to standard output."""
    asked = json.load(sys.stdin)
    requests = [each.encode("latin-1") for each in asked["requests"]]
    done = uvloop.run(send(requests=requests, **{name: asked[name] for name in asked if name != "requests"}))
    json.dump(asdict(done), sys.stdout)


if __name__ == "__main__":
    main()
