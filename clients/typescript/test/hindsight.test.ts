import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { HindsightClient, type Memory } from "heedful";

import { serve, type Server } from "./server.js";

const QUERY = "How do I implement authentication?";

let server: Server;

before(async () => {
  server = await serve();
  process.env["HEEDFUL_URL"] = server.url;
  process.env["HEEDFUL_API_KEY"] = server.key;
  await server.connect().remember({
    texts: ["Implement authentication with passkeys.", "Authentication needs https.", "The canteen closes at three."],
    dataset: "my-agent",
  });
});
after(() => server.stop());

test("signals for facts that are there and facts that are not", async () => {
  const client = new HindsightClient({
    bankId: "my-agent",
  });
  const query = QUERY;
  const recalled = await client.recall({ query });
  assert.ok(recalled[0]);
  const usedFactIds = [recalled[0].id, "fact-3"];
  const ignoredFactIds = ["fact-2", "fact-4"];
  const result = await client.signal({
    signals: [
      ...usedFactIds.map((factId) => ({
        factId,
        signalType: "used" as const,
        query,
        confidence: 1.0,
      })),
      ...ignoredFactIds.map((factId) => ({
        factId,
        signalType: "ignored" as const,
        query,
        confidence: 0.5,
      })),
    ],
  });
  assert.deepEqual(result.updated_facts, [recalled[0].id]);
  assert.deepEqual(result.errors.map((each) => each.fact_id), ["fact-3", "fact-2", "fact-4"]);
});

test("a fact of another bank is refused", async () => {
  const recalled = await new HindsightClient({ bankId: "my-agent" }).recall({ query: QUERY });
  assert.ok(recalled[0]);
  const other = new HindsightClient({ bankId: "another-agent" });
  const result = await other.signal({ signals: [{ factId: recalled[0].id, signalType: "used", query: QUERY }] });
  assert.deepEqual(result.updated_facts, []);
  assert.deepEqual(result.errors.map((each) => each.fact_id), [recalled[0].id]);
});

test("recall with a boost", async () => {
  const client = new HindsightClient({ bankId: "my-agent" });
  const results = await client.recall({
    query: QUERY,
    boost_by_usefulness: true,
    usefulness_weight: 0.3,
    min_usefulness: 0.0,
  });
  for (const each of results) {
    assert.ok(Math.abs(each.score - (0.7 * each.relevance + 0.3 * each.usefulness)) < 1e-9);
  }
  assert.ok(results.some((each) => each.usefulness > 0.5));
});

async function generateResponse(_query: string, memories: Memory[]): Promise<string> {
  return memories.find((memory) => memory.text.includes("https"))?.text ?? "";
}

function detectUsedFacts(response: string, memories: Memory[]): string[] {
  return memories.filter((memory) => response.includes(memory.text)).map((memory) => memory.id);
}

async function agentWithFeedback(userQuery: string): Promise<string> {
  const client = new HindsightClient({ bankId: "my-agent" });
  const memories = await client.recall({
    query: userQuery,
    boost_by_usefulness: true,
    usefulness_weight: 0.3,
  });
  const response = await generateResponse(userQuery, memories);
  const usedFactIds = detectUsedFacts(response, memories);
  const allFactIds = memories.map((m) => m.id);
  const ignoredFactIds = allFactIds.filter((id) => !usedFactIds.includes(id));
  await client.signal({
    signals: [
      ...usedFactIds.map((factId) => ({
        factId,
        signalType: "used" as const,
        query: userQuery,
        confidence: 1.0,
      })),
      ...ignoredFactIds.map((factId) => ({
        factId,
        signalType: "ignored" as const,
        query: userQuery,
        confidence: 0.5,
      })),
    ],
  });
  return response;
}

test("the whole loop: a fact that is used again and again comes first", async () => {
  const query = "Which authentication do we implement?";
  const client = new HindsightClient({ bankId: "my-agent" });
  const boost = { query, boost_by_usefulness: true, usefulness_weight: 0.6 };
  assert.match((await client.recall(boost))[0]?.text ?? "", /passkeys/);
  for (let times = 0; times < 4; times += 1) assert.match(await agentWithFeedback(query), /https/);
  assert.match((await client.recall(boost))[0]?.text ?? "", /https/);
});

test("a context and a confidence that are left out are left to the engine", async () => {
  const client = new HindsightClient({ bankId: "my-agent" });
  const [memory] = await client.recall({ query: QUERY });
  const result = await client.signal({
    signals: [{ factId: memory!.id, signalType: "helpful", query: QUERY, context: "asked by a person" }],
  });
  assert.equal(result.processed, 1);
});

test("a bank without facts has nothing to recall", async () => {
  assert.deepEqual(await new HindsightClient({ bankId: "nobody" }).recall({ query: QUERY }), []);
});

test("where there is no server in the environment, one has to be named", async () => {
  const { HEEDFUL_URL } = process.env;
  delete process.env["HEEDFUL_URL"];
  try {
    assert.throws(() => new HindsightClient({ bankId: "a" }), { name: "Invalid", field: "baseUrl" });
    const client = new HindsightClient({ bankId: "my-agent", baseUrl: server.url, apiKey: server.key });
    assert.ok((await client.recall({ query: QUERY })).length > 0);
  } finally {
    process.env["HEEDFUL_URL"] = HEEDFUL_URL;
  }
});
