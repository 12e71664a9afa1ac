"""Hindsight's own Python client, and the requests of its documents, against the routes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx
import pytest
import wires
from server import KEY
from wires import served

from heedful import Heedful
from heedful.testing import ManualClock

if TYPE_CHECKING:
    # It takes seconds to import, which a worker that runs no test of this file can spare.
    from hindsight_client import Hindsight

FACTS = ["Sign in with a passkey.", "Sessions end after an hour.", "The canteen closes at three."]
QUERY = "How do I sign in?"
BANK = "/v1/default/banks/my-agent"


@pytest.fixture
def url(store: Heedful) -> Iterator[str]:
    with served(store) as address:
        yield address


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with wires.client(url) as client:
        yield client


Program: TypeAlias = "Callable[[Hindsight], Awaitable[Any]]"


@pytest.fixture
def run(url: str) -> Callable[[Program], Any]:
    """Runs a program with the real client."""
    from hindsight_client import Hindsight

    def running(program: Program) -> Any:
        async def main() -> Any:
            client = Hindsight(base_url=url, api_key=KEY)
            try:
                return await program(client)
            finally:
                await client.aclose()  # type: ignore[no-untyped-call]

        return asyncio.run(main())

    return running


def refusal(match: str | None = None) -> Any:
    """Expects the client to raise its error."""
    from hindsight_client_api.exceptions import ApiException

    return pytest.raises(ApiException, match=match)


@pytest.fixture
def ids(store: Heedful) -> list[str]:
    return store.remember(FACTS, dataset="my-agent").fact_ids


def recalled(http: httpx.Client, query: str = QUERY, **options: Any) -> list[dict[str, Any]]:
    answer = http.post(f"{BANK}/memories/recall", json={"query": query, **options})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def signalled(http: httpx.Client, *signals: dict[str, Any]) -> dict[str, Any]:
    answer = http.post(f"{BANK}/signal", json={"signals": list(signals)})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


@pytest.mark.slow
def test_what_is_retained_is_recalled_with_all_that_was_said_of_it(run: Callable[[Program], Any]) -> None:
    async def program(client: Hindsight) -> None:
        done = await client.aretain(
            "my-agent",
            "Alice prefers tea.",
            timestamp="2024-01-15T10:30:00+00:00",
            context="a chat about breakfast",
            document_id="chat-1",
            metadata={"channel": "slack"},
            tags=["user:alice"],
        )
        assert (done.success, done.bank_id, done.items_count, done.var_async) == (True, "my-agent", 1, False)
        found = (await client.arecall("my-agent", "What does Alice drink? Tea?")).results
        assert [each.text for each in found] == ["Alice prefers tea."]
        assert (found[0].context, found[0].document_id) == ("a chat about breakfast", "chat-1")
        assert (found[0].metadata, found[0].tags) == ({"channel": "slack"}, ["user:alice"])
        assert found[0].mentioned_at == "2024-01-15T10:30:00+00:00"
        assert found[0].scores is not None
        assert 0 < found[0].scores.final <= 1

    run(program)


@pytest.mark.slow
def test_a_batch_is_retained_at_once_whether_or_not_the_caller_waits(run: Callable[[Program], Any]) -> None:
    async def program(client: Hindsight) -> None:
        items = [{"content": text, "tags": [str(place)]} for place, text in enumerate(FACTS)]
        done = await client.aretain_batch("my-agent", items, document_tags=["all"], retain_async=True)
        assert (done.items_count, done.var_async) == (3, False)
        listed = await client.alist_memories("my-agent")
        assert {(each.text, *(each.tags or [])) for each in listed.items} == {
            (text, str(place), "all") for place, text in enumerate(FACTS)
        }

    run(program)


def test_a_batch_is_written_in_one_transaction(
    http: httpx.Client, store: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[bool] = []
    backend = store._workspace.database

    def counting(begin: Callable[..., Any]) -> Callable[..., Any]:
        def begin_counted(project: str | None, *, write: bool, **options: Any) -> Any:
            begun.append(write)
            return begin(project, write=write, **options)

        return begin_counted

    for name in ("_begin", "_begin_direct"):
        monkeypatch.setattr(backend, name, counting(getattr(backend, name)))
    items = [
        {"content": f"Room {number} is free.", **({"document_id": f"doc {number}"} if number % 2 else {})}
        for number in range(60)
    ]
    assert http.post(f"{BANK}/memories", json={"items": items}).status_code == 200
    assert (begun.count(True), len(begun) < 10) == (1, True)
    facts = store.facts(dataset="my-agent").items
    begun.clear()
    signals = [{"fact_id": fact.fact_id, "signal_type": "used", "query": QUERY} for fact in facts]
    assert signalled(http, *signals, {**signals[0], "fact_id": "nowhere"})["signals_processed"] == 60
    assert (begun.count(True), len(begun) < 10) == (1, True)
    assert len(facts) == 60


def test_retaining_the_same_again_stores_nothing_twice(run: Callable[[Program], Any], store: Heedful) -> None:
    async def program(client: Hindsight) -> None:
        for _ in range(2):
            await client.aretain("my-agent", FACTS[0], context="x")

    run(program)
    assert store.get_dataset("my-agent").facts == 1


def test_a_document_that_is_retained_again_is_replaced_and_what_it_still_says_keeps_its_score(
    run: Callable[[Program], Any], store: Heedful
) -> None:
    async def program(client: Hindsight) -> None:
        await client.aretain_batch("my-agent", [{"content": text} for text in FACTS[:2]], document_id="rules")
        await client.aretain("my-agent", "Nothing to do with it.")
        kept = next(fact for fact in store.facts(dataset="my-agent").items if fact.text == FACTS[0])
        store.signal([{"fact_id": kept.fact_id, "signal_type": "helpful", "query": QUERY}])
        items = [{"content": FACTS[0]}, {"content": "Sessions end after a day."}]
        await client.aretain_batch("my-agent", items, document_id="rules")
        assert store.fact_stats(kept.fact_id).signal_count == 1
        await client.aretain("my-agent", "And one more.", document_id="rules", update_mode="append")

    run(program)
    texts = {fact.text for fact in store.facts(dataset="my-agent").items}
    assert texts == {FACTS[0], "Sessions end after a day.", "Nothing to do with it.", "And one more."}


def test_a_document_can_be_deleted(run: Callable[[Program], Any], store: Heedful) -> None:
    async def program(client: Hindsight) -> None:
        await client.aretain("my-agent", FACTS[0], document_id="rules")
        await client.aretain("my-agent", FACTS[1])
        deletion = await client.documents.delete_document("my-agent", "rules")
        assert (deletion.success, deletion.document_id, deletion.memory_units_deleted) == (True, "rules", 1)

    run(program)
    assert [fact.text for fact in store.facts(dataset="my-agent").items] == [FACTS[1]]


@pytest.mark.parametrize(
    ("match", "tags", "expected"),
    [
        ("any", ["a"], {"a", "ab", "none"}),
        ("any", ["a", "c"], {"a", "ab", "c", "none"}),
        ("any_strict", ["a", "c"], {"a", "ab", "c"}),
        ("all", ["a", "b"], {"ab", "none"}),
        ("all_strict", ["a", "b"], {"ab"}),
        ("exact", ["a"], {"a"}),
        ("exact", ["b", "a"], {"ab"}),
        ("exact", [], {"none"}),
        ("any", None, {"a", "ab", "c", "none"}),
    ],
)
@pytest.mark.nightly
def test_tags_filter_as_they_say(
    run: Callable[[Program], Any], match: str, tags: list[str] | None, expected: set[str]
) -> None:
    async def program(client: Hindsight) -> None:
        items = [{"content": f"fact {name}", "tags": list(name) if name != "none" else None} for name in TAGGED]
        await client.aretain_batch("my-agent", items)
        found = await client.arecall("my-agent", "fact", tags=tags, tags_match=match)  # type: ignore[arg-type]
        assert {each.text.removeprefix("fact ") for each in found.results} == expected

    run(program)


TAGGED = ["a", "ab", "c", "none"]


def test_recall_keeps_to_the_tokens_the_budget_and_the_score_it_is_given(
    run: Callable[[Program], Any], http: httpx.Client, store: Heedful
) -> None:
    store.remember([f"fact number {number}" for number in range(40)], dataset="my-agent")

    async def program(client: Hindsight) -> list[int]:
        return [len((await client.arecall("my-agent", "fact", budget=budget)).results) for budget in ("low", "mid")]

    assert run(program) == [10, 25]
    assert len(recalled(http, "fact", max_tokens=8)) == 2
    assert recalled(http, "fact number 7", min_scores={"final": 1.0}) == []


@pytest.mark.parametrize(("types", "count"), [(["world"], 3), (["experience"], 3), (["observation"], 0), (None, 3)])
def test_facts_answer_to_the_raw_types_and_to_no_other(
    run: Callable[[Program], Any], ids: list[str], types: list[str] | None, count: int
) -> None:
    found = run(lambda client: client.arecall("my-agent", "sign in session canteen", types=types))
    assert len(found.results) == count


@pytest.mark.parametrize(
    "question",
    [{"tag_groups": [{"tags": ["a"]}]}, {"min_scores": {"semantic": 0.5}}],
)
def test_a_filter_that_has_no_like_is_refused(run: Callable[[Program], Any], question: dict[str, Any]) -> None:
    with refusal() as refused:
        run(lambda client: client.arecall("my-agent", "x", **question))
    assert refused.value.status == 422
    assert "not supported here" in str(refused.value.body)


def test_an_image_is_refused_and_text_blocks_are_one_text(http: httpx.Client, store: Heedful) -> None:
    blocks = [{"type": "text", "text": "Press"}, {"type": "text", "text": "the button."}]
    assert http.post(f"{BANK}/memories", json={"items": [{"content": blocks}]}).status_code == 200
    assert [fact.text for fact in store.facts(dataset="my-agent").items] == ["Press\nthe button."]
    image = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}]
    answer = http.post(f"{BANK}/memories", json={"items": [{"content": "fine"}, {"content": image}]})
    assert answer.status_code == 422
    assert "image" in answer.json()["detail"][0]["msg"]
    assert store.get_dataset("my-agent").facts == 1


def test_a_bank_that_was_made_is_there_without_memories(run: Callable[[Program], Any]) -> None:
    async def program(client: Hindsight) -> None:
        made = await client.acreate_bank(
            "my-agent", name="Ada", mission="To help.", disposition_empathy=5, background="A lab."
        )
        assert (made.bank_id, made.name, made.mission, made.background) == ("my-agent", "Ada", "To help.", "A lab.")
        assert (made.disposition.empathy, made.disposition.skepticism) == (5, 3)
        again = await client.acreate_bank("my-agent", disposition_skepticism=1)
        assert (again.name, again.disposition.empathy, again.disposition.skepticism) == ("Ada", 5, 1)
        await client.aretain("other", "A fact.")
        listed = await client.banks.list_banks()
        assert [(bank.bank_id, bank.name, bank.fact_count) for bank in listed.banks] == [
            ("other", "other", 1),
            ("my-agent", "Ada", 0),
        ]
        assert listed.total == 2
        page = await client.banks.list_banks(q="ADA", limit=5, offset=0)
        assert [bank.bank_id for bank in page.banks] == ["my-agent"]
        assert (await client.arecall("my-agent", "anything")).results == []

    run(program)


def test_the_settings_of_a_bank_are_its_profile(run: Callable[[Program], Any], http: httpx.Client) -> None:
    async def program(client: Hindsight) -> None:
        await client.acreate_bank("my-agent", name="Ada", mission="To help.")
        changed = await client.aupdate_bank_config("my-agent", disposition_literalism=1)
        assert changed["overrides"] == {"reflect_mission": "To help.", "disposition_literalism": 1}
        found = await client.aget_bank_config("my-agent")
        assert found["config"] == {
            "reflect_mission": "To help.",
            "disposition_skepticism": 3,
            "disposition_literalism": 1,
            "disposition_empathy": 3,
        }
        profile = http.get(f"{BANK}/profile").json()
        assert (profile["mission"], profile["disposition"]["literalism"]) == ("To help.", 1)
        assert profile == http.get(BANK).json()
        assert (await client.areset_bank_config("my-agent"))["overrides"] == {}

    run(program)
    assert http.get(BANK).json()["name"] == "Ada"
    for updates in ({"enable_observations": True}, {"disposition_empathy": 6}):
        assert http.patch(f"{BANK}/config", json={"updates": updates}).status_code == 422


def test_a_bank_is_emptied_with_its_profile_kept_and_deleted_with_all(
    run: Callable[[Program], Any], http: httpx.Client
) -> None:
    async def program(client: Hindsight) -> None:
        await client.acreate_bank("my-agent", name="Ada")
        await client.aretain_batch("my-agent", [{"content": text} for text in FACTS])
        cleared = await client.memory.clear_bank_memories("my-agent")
        assert (cleared.success, cleared.deleted_count) == (True, 3)
        assert (await client.alist_memories("my-agent")).total == 0
        assert http.get(BANK).json()["name"] == "Ada"
        deleted = await client.adelete_bank("my-agent")
        assert deleted.success
        assert (await client.banks.list_banks()).banks == []
        with refusal() as gone:
            await client.adelete_bank("my-agent")
        assert gone.value.status == 404

    run(program)


def test_a_bank_that_nobody_made_answers_as_an_empty_one_and_is_not_made_by_reading(
    run: Callable[[Program], Any], http: httpx.Client
) -> None:
    async def program(client: Hindsight) -> None:
        assert (await client.arecall("nowhere", "x")).results == []
        assert (await client.alist_memories("nowhere")).total == 0
        assert (await client.banks.list_banks()).banks == []

    run(program)
    stats = http.get("/v1/default/banks/nowhere/stats/usefulness").json()
    assert (stats["bank_id"], stats["total_signals"], stats["average_usefulness"]) == ("nowhere", 0, 0.5)


@pytest.mark.slow
def test_memories_are_listed_the_newest_first_in_pages(run: Callable[[Program], Any], store: Heedful) -> None:
    store.remember([f"fact {number}" for number in range(5)], dataset="my-agent")
    store.remember("A note.", dataset="my-agent", source="doc", metadata={"year": 2024})

    async def program(client: Hindsight) -> None:
        page = await client.alist_memories("my-agent", limit=2, offset=1)
        assert ([each.text for each in page.items], page.total) == (["fact 4", "fact 3"], 6)
        assert (page.limit, page.offset) == (2, 1)
        found = await client.alist_memories("my-agent", search_query="FACT 2")
        assert [each.text for each in found.items] == ["fact 2"]
        document = await client.alist_memories("my-agent", document_id="doc")
        assert [(each.text, each.metadata) for each in document.items] == [("A note.", {"year": "2024"})]
        untagged = await client.alist_memories("my-agent", tags=["a"], tags_match="any", limit=1)
        assert (len(untagged.items), untagged.total) == (1, 6)
        assert (await client.alist_memories("my-agent", tags=["a"], tags_match="any_strict")).total == 0
        assert (await client.alist_memories("my-agent", type="observation")).total == 0
        assert (await client.alist_memories("my-agent", state="invalidated")).total == 0
        with refusal(match="not supported here"):
            await client.alist_memories("my-agent", entity_id="x")
        one: Any = await client.memory.get_memory("my-agent", document.items[0].id)
        assert one["text"] == "A note."
        with refusal() as elsewhere:
            await client.memory.get_memory("other", document.items[0].id)
        assert elsewhere.value.status == 404

    run(program)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.areflect("my-agent", "why?"),
        lambda client: client.alist_mental_models("my-agent"),
        lambda client: client.alist_directives("my-agent"),
        lambda client: client.documents.list_documents("my-agent"),
        lambda client: client.operations.list_operations("my-agent"),
        lambda client: client.aget_knowledge_base_tree("my-agent"),
    ],
)
@pytest.mark.slow
def test_what_is_not_here_is_refused_with_a_reason(run: Callable[[Program], Any], call: Program) -> None:
    with refusal(match=" here") as refused:
        run(call)
    assert refused.value.status == 501


@pytest.mark.slow
def test_the_client_can_ask_for_the_version(run: Callable[[Program], Any]) -> None:
    found = run(lambda client: client.aget_version())
    assert found.api_version == "0.0.0+heedful"
    assert not found.features.observations


def test_the_documented_loop_of_recall_signals_and_boosted_recall(http: httpx.Client, ids: list[str]) -> None:
    query = "When do things close or end?"
    plain = [each["id"] for each in recalled(http, query)]
    used, ignored = plain[-1], plain[:-1]
    for _ in range(3):
        result = signalled(
            http,
            {"fact_id": used, "signal_type": "used", "query": query, "confidence": 1.0},
            *({"fact_id": each, "signal_type": "ignored", "query": query, "confidence": 0.5} for each in ignored),
        )
        assert (result["success"], result["signals_processed"], result["errors"]) == (True, len(plain), [])
        assert set(result["updated_facts"]) == set(plain)
    boosted = recalled(http, query, boost_by_usefulness=True, usefulness_weight=0.9)
    assert boosted[0]["id"] == used
    assert [each["id"] for each in recalled(http, query)] == plain
    first = boosted[0]["scores"]
    assert first["usefulness"] == pytest.approx(0.8)
    assert recalled(http, query)[-1]["scores"]["usefulness"] == pytest.approx(0.8)
    assert first["final"] == pytest.approx(0.1 * first["relevance"] + 0.9 * first["usefulness"])
    useful = recalled(http, query, boost_by_usefulness=True, min_usefulness=0.6)
    assert [each["id"] for each in useful] == [used]


@pytest.mark.parametrize(
    ("kind", "score"), [("used", 0.60), ("ignored", 0.45), ("helpful", 0.65), ("not_helpful", 0.40)]
)
def test_each_signal_moves_the_score_by_the_documented_step(
    http: httpx.Client, ids: list[str], clock: ManualClock, kind: str, score: float
) -> None:
    at = clock().isoformat()
    signalled(http, {"fact_id": ids[0], "signal_type": kind, "query": QUERY, "context": "a note"})
    stats = http.get(f"{BANK}/facts/{ids[0]}/stats").json()
    assert (stats["fact_id"], stats["signal_count"], stats["signal_breakdown"][kind]) == (ids[0], 1, 1)
    assert stats["usefulness_score"] == pytest.approx(score)
    assert (stats["last_signal_at"], stats["created_at"]) == (at, at)
    clock.advance(days=7)
    later = http.get(f"{BANK}/facts/{ids[0]}/stats").json()
    assert later["usefulness_score"] == pytest.approx(0.5 + (score - 0.5) * 0.95)


def test_a_fact_without_signals_is_neutral_and_one_of_another_bank_is_not_found(
    http: httpx.Client, store: Heedful, ids: list[str]
) -> None:
    stats = http.get(f"{BANK}/facts/{ids[0]}/stats").json()
    assert (stats["usefulness_score"], stats["signal_count"], stats["last_signal_at"]) == (0.5, 0, None)
    other = store.remember("elsewhere", dataset="other").fact_ids[0]
    for unknown in (other, "00000000-0000-0000-0000-000000000000"):
        answer = http.get(f"{BANK}/facts/{unknown}/stats")
        assert (answer.status_code, unknown in answer.json()["detail"]) == (404, True)


def test_the_usefulness_of_a_bank_is_summed_up(http: httpx.Client, ids: list[str]) -> None:
    signalled(
        http,
        {"fact_id": ids[0], "signal_type": "used", "query": QUERY},
        {"fact_id": ids[0], "signal_type": "helpful", "query": QUERY},
        {"fact_id": ids[1], "signal_type": "ignored", "query": QUERY},
    )
    stats = http.get(f"{BANK}/stats/usefulness").json()
    assert (stats["bank_id"], stats["total_facts_with_signals"], stats["total_signals"]) == ("my-agent", 2, 3)
    assert stats["signal_distribution"] == {"used": 1, "ignored": 1, "helpful": 1, "not_helpful": 0}
    assert stats["average_usefulness"] == pytest.approx((0.75 + 0.45) / 2)
    assert (stats["top_useful_facts"][0]["fact_id"], stats["least_useful_facts"][0]["fact_id"]) == (ids[0], ids[1])
    assert stats["top_useful_facts"][0]["text"] == FACTS[0]


def test_facts_of_other_banks_are_refused_one_by_one_and_the_rest_is_taken(
    http: httpx.Client, store: Heedful, ids: list[str]
) -> None:
    other = store.remember("elsewhere", dataset="other").fact_ids[0]
    result = signalled(
        http,
        {"fact_id": other, "signal_type": "used", "query": QUERY},
        {"fact_id": ids[0], "signal_type": "used", "query": QUERY},
        {"fact_id": "nobody", "signal_type": "used", "query": QUERY},
    )
    assert (result["success"], result["signals_processed"], result["updated_facts"]) == (False, 1, [ids[0]])
    assert [(error["index"], error["fact_id"]) for error in result["errors"]] == [(0, other), (2, "nobody")]
    assert store.fact_stats(other).signal_count == 0


@pytest.mark.parametrize(
    ("signal", "where", "kind"),
    [
        ({"query": None}, "query", "string_type"),
        ({"query": ...}, "query", "missing"),
        ({"query": "  "}, "query", "value_error"),
        ({"signal_type": "liked"}, "signal_type", "literal_error"),
        ({"confidence": 1.5}, "confidence", "less_than_equal"),
        ({"confidence": -0.1}, "confidence", "greater_than_equal"),
        ({"fact_id": ...}, "fact_id", "missing"),
    ],
)
def test_a_signal_that_cant_be_accepted_is_a_422_that_says_where(
    http: httpx.Client, store: Heedful, ids: list[str], signal: dict[str, Any], where: str, kind: str
) -> None:
    good = {"fact_id": ids[0], "signal_type": "used", "query": QUERY}
    bad = {name: value for name, value in {**good, **signal}.items() if value is not ...}
    answer = http.post(f"{BANK}/signal", json={"signals": [good, bad]})
    assert answer.status_code == 422
    (problem,) = answer.json()["detail"]
    assert problem["loc"] == ["body", "signals", 1, where]
    assert problem["type"] == kind
    assert where in problem["msg"]
    assert store.fact_stats(ids[0]).signal_count == 0


@pytest.mark.parametrize("body", [None, [], {}, {"signals": "x"}, {"signals": [3]}])
def test_a_body_that_is_no_list_of_signals_is_a_422(http: httpx.Client, body: Any) -> None:
    answer = http.post(f"{BANK}/signal", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][0] == "body"


@pytest.mark.parametrize(
    "question",
    [{}, {"query": " "}, {"query": "x", "usefulness_weight": 2}, {"query": "x", "budget": "all"}, {"query": ["x"]}],
)
def test_a_recall_that_cant_be_accepted_is_a_422(http: httpx.Client, question: dict[str, Any]) -> None:
    assert http.post(f"{BANK}/memories/recall", json=question).status_code == 422


@pytest.mark.parametrize(
    "item", [{}, {"content": ""}, {"content": "x", "metadata": {"hindsight": "x"}}, {"content": "x", "timestamp": "?"}]
)
def test_an_item_that_cant_be_accepted_stores_nothing(http: httpx.Client, store: Heedful, item: dict[str, Any]) -> None:
    answer = http.post(f"{BANK}/memories", json={"items": [{"content": "fine"}, item]})
    assert answer.status_code == 422
    assert store.datasets() == []


def test_the_client_sees_the_detail_of_a_422(run: Callable[[Program], Any]) -> None:
    with refusal() as refused:
        run(lambda client: client.arecall("my-agent", " "))
    assert refused.value.status == 422
    problem: Any = refused.value.data
    assert problem.detail[0].msg.startswith("query must not be empty")


def test_clearing_by_type_would_clear_too_much_and_is_refused(http: httpx.Client, ids: list[str]) -> None:
    answer = http.delete(f"{BANK}/memories", params={"type": "experience"})
    assert answer.status_code == 422
    assert len(recalled(http, "sign in session canteen")) == 3
