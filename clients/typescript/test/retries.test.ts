import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { type Heedful, Unavailable } from "heedful";

import { type Mishap, Proxy } from "./proxy.js";
import { serve, type Server } from "./server.js";

let server: Server;
let proxy: Proxy;
let client: Heedful;

before(async () => {
  server = await serve();
  proxy = await Proxy.before(server.url);
  client = server.connect("default", { url: proxy.url, timeout: 20_000 });
});
after(async () => {
  proxy.close();
  await server.stop();
});
beforeEach(() => proxy.expect());

/** The keys under which requests came. */
function keys(): unknown[] {
  return proxy.seen.map((each) => each.headers["idempotency-key"]);
}

const BUSY = { code: "in_progress", detail: "it is being done" };

const PASSING: Record<string, Mishap> = {
  "a connection that is cut": "cut before it arrives",
  "too many calls": { status: 429, headers: { "Retry-After": "0" }, body: { code: "rate_limited" } },
  "a bad gateway": { status: 502 },
  "a busy store": { status: 503, headers: { "Retry-After": "0" }, body: { code: "store_busy" } },
  "a proxy without servers": { status: 503 },
  "a slow gateway": { status: 504 },
  "a fault that may pass": { status: 500, headers: { "Retry-After": "0" }, body: { code: "fault" } },
  "the same call under way": { status: 409, body: BUSY },
};

for (const [what, mishap] of Object.entries(PASSING)) {
  test(`${what} is overcome`, async () => {
    proxy.expect(mishap);
    assert.deepEqual(await client.datasets(), []);
    assert.equal(proxy.seen.length, 2);
  });
}

const LASTING: Record<string, Mishap> = {
  "a conflict": { status: 409, body: { code: "conflict" } },
  "an error that will not pass": { status: 503, body: { code: "extra_missing" } },
  "a wrong value": { status: 422, body: { code: "invalid" } },
};

for (const [what, mishap] of Object.entries(LASTING)) {
  test(`${what} is not sent again`, async () => {
    proxy.expect(mishap);
    await assert.rejects(client.datasets());
    assert.equal(proxy.seen.length, 1);
  });
}

test("what was done before the connection was cut is done once", async () => {
  const before = (await client.sessions.feedbackMetrics()).total;
  await client.sessions.create({ session_id: "chat-1" });
  proxy.expect("cut after it was done", "cut after it was done");
  const given = await client.sessions.addSessionFeedback("chat-1", { feedback: { rating: "up" } });
  assert.ok(given);
  assert.equal(keys().length, 3);
  assert.equal(new Set(keys()).size, 1);
  assert.ok(keys()[0]);
  assert.equal((await client.sessions.feedbackMetrics()).total, before + 1);
});

test("each call has a key of its own, and reading has none", async () => {
  await client.sessions.create({ session_id: "a" });
  await client.sessions.create({ session_id: "b" });
  await client.sessions.get("a");
  await client.remember({ texts: "Sign in with a passkey." });
  const [first, second, ...others] = keys();
  assert.notEqual(first, second);
  assert.deepEqual(others, [undefined, undefined]);
});

test("a call that is repeated under the caller's key counts once", async () => {
  const { facts } = await client.remember({ texts: "The canteen closes at three." });
  const signals = [{ fact_id: facts[0]!.fact_id, signal_type: "used" as const, query: "canteen" }];
  const first = await client.signal({ signals }, { idempotencyKey: "answer-7" });
  const again = await client.signal({ signals }, { idempotencyKey: "answer-7" });
  assert.deepEqual(again, first);
  assert.equal((await client.factStats(facts[0]!.fact_id)).signal_count, 1);
});

test("after four times it gives up", async () => {
  proxy.expect(...Array<Mishap>(10).fill({ status: 502 }));
  await assert.rejects(client.datasets(), (error) => error instanceof Unavailable && error.status === 502);
  assert.equal(proxy.seen.length, 4);
});

test("a server that asks to wait is not asked before", async () => {
  const limited = await serve({ rate_limit: 1 });
  try {
    const eager = limited.connect();
    const found = await Promise.all([1, 2, 3].map(() => eager.datasets()));
    assert.deepEqual(found, [[], [], []]);
  } finally {
    await limited.stop();
  }
});

test("a call ends when its time is up, and says so", async () => {
  proxy.expect("silence");
  await assert.rejects(client.datasets({ timeout: 1_000 }), { name: "Unavailable", code: "server_timeout" });
  proxy.expect("silence");
  const hasty = server.connect("default", { url: proxy.url, timeout: 1_000 });
  await assert.rejects(hasty.datasets(), { name: "Unavailable", code: "server_timeout" });
  assert.equal(proxy.seen.length, 1);
});

test("its time includes the pauses", async () => {
  proxy.expect({ status: 429, headers: { "Retry-After": "30" }, body: { code: "rate_limited" } });
  await assert.rejects(client.datasets({ timeout: 1_000 }), { code: "server_timeout" });
  assert.equal(proxy.seen.length, 1);
});

test("a call ends when its signal is aborted: before, while it waits, and while it pauses", async () => {
  const reason = new Error("enough");
  await assert.rejects(client.datasets({ signal: AbortSignal.abort(reason) }), reason);
  assert.equal(proxy.seen.length, 0);
  const mishaps: Mishap[] = ["silence", { status: 429, headers: { "Retry-After": "30" }, body: {} }];
  for (const mishap of mishaps) {
    proxy.expect(mishap);
    const controller = new AbortController();
    const call = client.datasets({ signal: controller.signal });
    while (proxy.seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    controller.abort(reason);
    await assert.rejects(call, reason);
    assert.equal(proxy.seen.length, 1);
  }
});
