import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { connect, type Heedful, Unavailable } from "heedful";

import { serve, type Server } from "./server.js";

const QUERY = "How do I sign in?";

let server: Server;
let client: Heedful;

before(async () => {
  server = await serve();
  client = server.connect();
  await client.remember({ texts: ["Sign in with a passkey – or a “key”.", "The canteen closes at three."] });
});
after(() => server.stop());

/** A client whose server sends these parts of a stream, and then ends or breaks off. */
function streaming(parts: (string | Uint8Array)[], broken = false): { client: Heedful; calls: () => number } {
  let calls = 0;
  const send = async (): Promise<Response> => {
    calls += 1;
    const left = parts.map((part) => (typeof part === "string" ? new TextEncoder().encode(part) : part));
    const body = new ReadableStream({
      pull(controller) {
        const part = left.shift();
        if (part) controller.enqueue(part);
        else if (broken) controller.error(new TypeError("terminated"));
        else controller.close();
      },
    });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  };
  return { client: connect("http://127.0.0.1:1", { fetch: send }), calls: () => calls };
}

test("the parts of an answer come while it is made, and are all of it", async () => {
  const parts: string[] = [];
  const recall = await client.recall({ query: QUERY, answer: true }, { onToken: (text) => parts.push(text) });
  assert.ok(recall.answer);
  assert.equal(parts.join(""), recall.answer);
  assert.equal((await client.recall({ query: QUERY, answer: true })).answer, recall.answer);
});

test("remembering tells how far it is", async () => {
  const told: [number, number][] = [];
  const texts = ["One is odd.", "Two is even."];
  const result = await client.remember({ texts }, { progress: (done, total) => told.push([done, total]) });
  assert.equal(result.added, 2);
  assert.deepEqual(told.at(-1), [2, 2]);
});

test("a problem in a stream is thrown as it would be without one", async () => {
  const call = client.recall({ query: " ", answer: true }, { onToken: () => undefined });
  await assert.rejects(call, { name: "Invalid", field: "query" });
  const unasked = client.recall({ query: QUERY }, { onToken: () => undefined });
  await assert.rejects(unasked, { name: "Invalid", field: "on_token" });
});

test("what a callback throws ends the call", async () => {
  const error = new Error("the page is closed");
  const call = client.recall(
    { query: QUERY, answer: true },
    {
      onToken: () => {
        throw error;
      },
    },
  );
  await assert.rejects(call, error);
});

test("a stream may arrive in any pieces", async () => {
  const whole = new TextEncoder().encode('event: on_token\ndata: ["über\u2028"]\n\nevent: result\ndata: {"answer": "✓"}\n\n');
  const found: string[] = [];
  const { client } = streaming(Array.from(whole, (byte) => Uint8Array.of(byte)));
  const recall = await client.recall({ query: QUERY, answer: true }, { onToken: (text) => found.push(text) });
  assert.deepEqual([found, recall.answer], [["über\u2028"], "✓"]);
});

test("a stream that breaks off is asked for again, unless something of it was shown", async () => {
  const silent = streaming([": nothing yet\n\n"], true);
  await assert.rejects(
    silent.client.recall({ query: QUERY, answer: true }, { onToken: () => undefined }),
    (error) => error instanceof Unavailable && error.code === "server_unreachable",
  );
  assert.equal(silent.calls(), 4);
  for (const broken of [true, false]) {
    const begun = streaming(['event: on_token\ndata: ["Sign"]\n\n'], broken);
    const found: string[] = [];
    const call = begun.client.recall({ query: QUERY, answer: true }, { onToken: (text) => found.push(text) });
    await assert.rejects(call, { name: "Unavailable", code: "server_unreachable" });
    assert.deepEqual([found, begun.calls()], [["Sign"], 1]);
  }
});

test("a stream ends when its signal is aborted", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const call = client.recall(
    { query: QUERY, answer: true },
    { signal: controller.signal, onToken: () => controller.abort(reason) },
  );
  await assert.rejects(call, reason);
});
