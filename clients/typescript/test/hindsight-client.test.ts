/** Hindsight's own client, as it is published, against a server of Heedful's. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { HindsightClient, HindsightError } from "@vectorize-io/hindsight-client";

import { serve, type Server } from "./server.js";

let server: Server;
let client: HindsightClient;

before(async () => {
  server = await serve();
  client = new HindsightClient({ baseUrl: server.url, apiKey: server.key });
});
after(() => server.stop());

test("what is retained is recalled", async () => {
  const kept = await client.retain("alice", "Alice prefers tea.", { context: "breakfast", tags: ["drinks"] });
  assert.deepEqual([kept.success, kept.items_count], [true, 1]);
  await client.retainBatch("alice", [
    { content: "Alice lives in Rome.", document_id: "about" },
    { content: "Alice was born in Oslo.", timestamp: new Date("2024-01-15T10:30:00Z") },
  ]);
  const { results } = await client.recall("alice", "What does Alice prefer?");
  assert.equal(results[0]?.text, "Alice prefers tea.");
  assert.ok(results[0].id);
  const tagged = await client.recall("alice", "What about Alice?", { tags: ["drinks"], tagsMatch: "any_strict" });
  assert.deepEqual(tagged.results.map((each) => each.text), ["Alice prefers tea."]);
});

test("memories are listed, and those of a document deleted", async () => {
  await client.retainBatch("bob", [
    { content: "Bob plays chess.", document_id: "games" },
    { content: "Bob has a cat." },
  ]);
  const listed = await client.listMemories("bob", { limit: 10 });
  assert.equal(listed.total, 2);
  await client.deleteDocument("bob", "games");
  const left = await client.listMemories("bob");
  assert.deepEqual(left.items.map((each) => each["text"]), ["Bob has a cat."]);
});

test("a bank is made, described, and deleted", async () => {
  const made = await client.createBank("carol", { reflectMission: "Know what Carol likes." });
  assert.equal(made.bank_id, "carol");
  assert.equal((await client.getBankProfile("carol")).bank_id, "carol");
  await client.setMission("carol", "Know where Carol is.");
  assert.equal((await client.getBankProfile("carol")).mission, "Know where Carol is.");
  await client.deleteBank("carol");
  await assert.rejects(client.getBankProfile("carol"), (error) => error instanceof HindsightError && error.statusCode === 404);
});

test("a bank that nobody made is empty", async () => {
  assert.deepEqual((await client.recall("nobody", "What is known?")).results, []);
});

test("what Heedful has no like of is refused, and says why", async () => {
  await assert.rejects(
    client.reflect("alice", "What are my interests?"),
    (error) => error instanceof HindsightError && error.statusCode === 501 && typeof error.details === "string",
  );
});

test("the version is told, and a wrong key is refused", async () => {
  assert.ok((await client.getVersion()).api_version);
  const stranger = new HindsightClient({ baseUrl: server.url, apiKey: "hf_wrong" });
  await assert.rejects(stranger.recall("alice", "tea"), (error) => error instanceof HindsightError && error.statusCode === 401);
});

test("both clients see the same: a signal given by one ranks for the other", async () => {
  const bank = "shared";
  await client.retainBatch(bank, [{ content: "Sign in with a passkey." }, { content: "Sign in with a password." }]);
  const query = "How do I sign in?";
  const { results } = await client.recall(bank, query);
  const last = results.at(-1)!;
  const heedful = server.connect();
  await heedful.signal({ signals: [{ fact_id: last.id, signal_type: "helpful", query }] });
  const boosted = await heedful.recall({ query, dataset: bank, boost_by_usefulness: true, usefulness_weight: 0.9 });
  assert.equal(boosted.hits[0]?.fact_id, last.id);
});
