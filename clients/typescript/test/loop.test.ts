import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { etag, type Heedful, type Session } from "heedful";

import { serve, type Server } from "./server.js";

const FACTS = ["Sign in with a passkey.", "Sign in with a password.", "The canteen closes at three."];
const QUERY = "How do I sign in?";

let server: Server;
let projects = 0;

before(async () => {
  server = await serve();
});
after(() => server.stop());

/** A project of its own for each test. */
function fresh(): Heedful {
  projects += 1;
  return server.connect(`project-${projects}`);
}

test("what was useful comes first the next time", async () => {
  const client = fresh();
  const kept = await client.remember({ texts: FACTS });
  assert.equal(kept.added, 3);
  const first = await client.recall({ query: QUERY });
  const second = first.hits[1];
  assert.ok(second);
  for (let times = 0; times < 4; times += 1) {
    const recall = await client.recall({ query: QUERY });
    const result = await client.signalRecall(recall.recall_id, { helpful: [second.fact_id] });
    assert.equal(result.processed, recall.hits.length);
  }
  const boosted = await client.recall({ query: QUERY, boost_by_usefulness: true, usefulness_weight: 0.6, explain: true });
  assert.equal(boosted.hits[0]?.fact_id, second.fact_id);
  assert.ok((boosted.hits[0]?.explanation?.events.length ?? 0) > 0);
  const stats = await client.factStats(second.fact_id);
  assert.ok(stats.overall_usefulness > 0.5);
  assert.equal((await client.usefulnessStats()).facts_with_signals, first.hits.length);
});

test("a signal that is retracted leaves no trace", async () => {
  const client = fresh();
  const { facts } = await client.remember({ texts: FACTS });
  const fact = facts[0]!.fact_id;
  const given = await client.signal({ signals: [{ fact_id: fact, signal_type: "helpful", query: QUERY }] });
  assert.ok((await client.factStats(fact)).overall_usefulness > 0.5);
  await client.retract(given.event_ids[0]!);
  assert.equal((await client.factStats(fact)).overall_usefulness, 0.5);
});

/** Waits for something to come true. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, "it did not happen");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("an answer is rated, and that changes what is recalled by itself, until it is taken back", async () => {
  const client = fresh();
  const query = "When does the gym open?";
  await client.remember({ texts: ["The gym opens at six.", "The gym opens at seven."] });
  const recall = await client.recall({ query });
  const before = recall.hits.map((hit) => hit.text);
  const entry = { question: query, answer: before[0]!, recall_id: recall.recall_id };
  const qaId = (await client.sessions.addEntry("chat-1", entry)).qa_id;
  const ranked = async () => (await client.recall({ query })).hits.map((hit) => hit.text);
  for (const author of ["ada", "bo", "cy"])
    assert.equal(await client.sessions.addFeedback("chat-1", qaId, { feedback_score: 1, author }), true);
  await until(async () => (await ranked())[0] !== before[0]);
  assert.equal(await client.sessions.deleteFeedback("chat-1", qaId), true);
  await until(async () => (await ranked()).join() === before.join());
});

test("an entry that is not there can't be rated, which is no error", async () => {
  const client = fresh();
  await client.sessions.create({ session_id: "chat-1" });
  assert.equal(await client.sessions.addFeedback("chat-1", "nothing", { feedback_score: 5 }), false);
});

test("pages are walked as far as they are needed", async () => {
  const client = fresh();
  const names = Array.from({ length: 7 }, (_, index) => `chat-${index}`);
  for (const name of names) await client.sessions.create({ session_id: name });
  const page = await client.sessions.list({ limit: 3 });
  assert.equal(page.items.length, 3);
  assert.ok(page.next_cursor);
  const found: Session[] = [];
  for await (const session of client.sessions.iterate({ limit: 3 })) found.push(session);
  assert.deepEqual(found.map((each) => each.session_id).sort(), names);
  for await (const session of client.sessions.iterate()) {
    assert.equal(session.session_id, found[0]?.session_id);
    break;
  }
});

test("pages of one session are walked, too", async () => {
  const client = fresh();
  const messages = ["one", "two", "three"].map((content) => ({ role: "user", content }));
  await client.sessions.addMessages("chat-1", { messages });
  const found: string[] = [];
  for await (const message of client.sessions.iterateMessages("chat-1", { limit: 2 })) found.push(message.content);
  assert.deepEqual(found, ["one", "two", "three"]);
});

test("what fields of a query carry arrives: lists, objects, booleans", async () => {
  const client = fresh();
  await client.sessions.create({ session_id: "a", metadata: { plan: "free", tier: 1, left: true } });
  await client.sessions.create({ session_id: "b", metadata: { plan: "paid" } });
  const found = await client.sessions.list({ where: { plan: "paid" } });
  assert.deepEqual(found.items.map((each) => each.session_id), ["b"]);
  const left = await client.sessions.deleteMetadata("a", { keys: ["tier", "left"] });
  assert.deepEqual(left, { plan: "free" });
  await client.sessions.addMessages("a", { messages: [{ role: "user", content: "1" }, { role: "user", content: "2" }] });
  const [newest] = (await client.sessions.messages("a", { newest_first: true, limit: 1 })).items;
  assert.ok(newest);
  assert.equal(newest.content, "2");
  const changed = await client.sessions.updateMessage("a", newest.message_id, { content: "two" });
  assert.deepEqual([changed.content, changed.message_id], ["two", newest.message_id]);
  assert.equal(await client.sessions.deleteMessage("a", newest.message_id), true);
  assert.equal((await client.sessions.messages("a")).items.length, 1);
});

test("facts are filtered, and a recall is paged", async () => {
  const client = fresh();
  await client.remember({ texts: ["The gym opens at 6.", "The gym has a pool."], metadata: { lang: "en" } });
  const second = await client.remember({ texts: "The gym opens at 7.", metadata: { kind: "note" } });
  assert.deepEqual(second.conflicts.map((each) => [each.other_value, each.value]), [["6", "7"]]);
  const listed = await client.facts({ where: { lang: "en" } });
  assert.equal(listed.items.length, 2);
  const first = await client.recall({ query: "gym", top_k: 2 });
  const next = await client.recall({ query: "gym", top_k: 2, cursor: first.next_cursor ?? undefined });
  assert.equal(next.hits.length, 1);
  assert.equal(new Set([...first.hits, ...next.hits].map((each) => each.fact_id)).size, 3);
  assert.equal((await client.checkFacts()).facts, 3);
});

test("a name may hold anything that an address has a meaning for", async () => {
  const client = fresh();
  for (const name of ["a/b?c#d", "100% übel", "✓ {qa_id} $&", "a+b&c=d"]) {
    await client.sessions.create({ session_id: name });
    assert.equal((await client.sessions.get(name)).session_id, name);
  }
});

test("a change is refused if somebody else made one", async () => {
  const client = fresh();
  await client.sessions.create({ session_id: "a", metadata: { step: 1 } });
  const seen = await client.sessions.getMetadata("a");
  const ifMatch = etag(seen);
  assert.ok(ifMatch);
  const mine = await client.sessions.updateMetadata("a", { metadata: { step: 2 } }, { ifMatch });
  assert.equal(mine["step"], 2);
  await assert.rejects(client.sessions.updateMetadata("a", { metadata: { step: 3 } }, { ifMatch }), {
    name: "Conflict",
    code: "changed_meanwhile",
  });
  await client.sessions.updateMetadata("a", { metadata: { step: 3 } }, { ifMatch: etag(mine)! });
});

test("every operation of the server has a method", async () => {
  const client = server.connect() as unknown as Record<string, Record<string, unknown>>;
  const description = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { operationId: string; tags: string[] }>>;
  };
  const operations = Object.values(description.paths).flatMap((item) => Object.values(item));
  assert.ok(operations.length > 80);
  for (const { operationId, tags } of operations) {
    const name = operationId.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    const verb = name.split(".").at(-1)!;
    const owner = name.includes(".") ? client[name.split(".")[0]!] : tags[0] === "memory" ? client : client[tags[0]!];
    assert.equal(typeof owner?.[verb], "function", operationId);
  }
});

test("the server's own state can be asked for", async () => {
  const client = server.connect();
  assert.deepEqual(await client.server.healthz(), { status: "ok" });
  assert.deepEqual(await client.server.readyz(), { status: "ready" });
  assert.match(await client.server.metrics(), /heedful_requests_total/);
  assert.ok(Array.isArray(await client.server.projects()));
});

test("calls without parameters and with many at once get each their own answer", async () => {
  const client = fresh();
  await client.remember({ texts: FACTS });
  await client.setPolicy({ policy: "adaptive" });
  assert.equal((await client.policy()).chosen_for, "project");
  const found = await Promise.all(
    Array.from({ length: 20 }, (_, index) => client.sessions.create({ session_id: `s-${index}` })),
  );
  assert.deepEqual(found.map((each) => each.session_id), Array.from({ length: 20 }, (_, index) => `s-${index}`));
});
