"""A real language model on a real server: what it says is not judged, but that it arrives is."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest

from heedful import Heedful, Unavailable
from heedful.memory.answer import write
from heedful.memory.graph_recall import name_entities
from heedful.providers.endpoints import EndpointModel
from heedful.providers.llm import ChatMessage

PATIENCE = 300.0
ASKED = [ChatMessage("user", "Say hello.")]


def _module() -> ModuleType:
    """The file beside this one, which is in no package."""
    spec = importlib.util.spec_from_file_location("language_model", Path(__file__).with_name("language_model.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


serving = _module()
language_model_url = serving.language_model_url


@pytest.fixture
def model(language_model_url: str) -> Iterator[EndpointModel]:
    model = EndpointModel(language_model_url, "smollm2", timeout=PATIENCE)
    yield model
    model._client.close()


@pytest.mark.slow
def test_an_answer_is_streamed_and_its_tokens_are_counted(model: EndpointModel) -> None:
    parts: list[str] = []
    found = model.complete(ASKED, on_token=parts.append)
    assert len(parts) > 1
    assert "".join(parts) == found.text
    assert found.usage.prompt_tokens is not None
    assert found.usage.prompt_tokens > 5
    assert found.usage.completion_tokens is not None
    assert len(parts) <= found.usage.completion_tokens <= 64


@pytest.mark.nightly
def test_an_answer_is_written_from_hits(model: EndpointModel, store: Heedful) -> None:
    remembered = store.remember(["The office in Lyon opens at nine.", "The canteen is closed on Fridays."])
    hits = store.recall("When does the office in Lyon open?", top_k=2).hits
    parts: list[str] = []
    found = write(model, "When does the office in Lyon open?", hits, [("Hi!", "Hello.")], parts.append)
    assert found.text == "".join(parts)
    assert found.text.strip()
    assert found.model == model.name
    assert found.usage is not None
    assert found.usage.prompt_tokens is not None
    assert found.usage.prompt_tokens > 100
    assert {use.fact_id for use in found.used} <= set(remembered.fact_ids)


@pytest.mark.nightly
def test_names_are_asked_for_and_only_those_in_the_text_are_kept(model: EndpointModel) -> None:
    texts = ["Ada Lovelace met Charles Babbage in London.", "Nothing of note."]
    found = name_entities(model, texts)
    assert len(found) == 2
    for text, names in zip(texts, found, strict=True):
        assert all(name.lower() in text.lower() for name in names)


@pytest.mark.nightly
def test_a_server_that_starts_late_is_asked_again(tmp_path: Path) -> None:
    port = _unused_port()
    pauses: list[float] = []
    with ExitStack() as running:

        def start(pause: float) -> None:
            pauses.append(pause)
            running.enter_context(serving.serving(tmp_path / "log", port))

        late = EndpointModel(f"http://127.0.0.1:{port}/v1", "smollm2", timeout=PATIENCE, attempts=2, sleep=start)
        assert late.complete(ASKED).text
        late._client.close()
    assert len(pauses) == 1


def test_a_server_that_takes_the_connection_and_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        pauses: list[float] = []
        model = EndpointModel(url, "smollm2", timeout=0.05, attempts=2, sleep=pauses.append)
        with pytest.raises(Unavailable, match=r"ReadTimeout.*tried 2 times"):
            model.complete(ASKED)
        model._client.close()
    assert len(pauses) == 1


def test_a_server_that_can_not_start_is_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    monkeypatch.setattr(serving, "weights", lambda: broken)
    with pytest.raises(RuntimeError, match="did not start"), serving.serving(tmp_path / "log"):
        pass


def _unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port
