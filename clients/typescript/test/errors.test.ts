import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Conflict, connect, Forbidden, HeedfulError, HindsightClient, Invalid, NotFound, Unavailable } from "heedful";

import { Proxy } from "./proxy.js";
import { serve, type Server } from "./server.js";

let server: Server;

before(async () => {
  server = await serve();
});
after(() => server.stop());

async function thrown(call: Promise<unknown>): Promise<HeedfulError> {
  const error: unknown = await call.then(
    () => assert.fail("nothing was thrown"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof HeedfulError, String(error));
  assert.ok(error instanceof Error);
  return error;
}

test("what is not there is NotFound, with what the server says of it", async () => {
  const error = await thrown(server.connect().sessions.get("nothing"));
  assert.ok(error instanceof NotFound);
  assert.equal(error.name, "NotFound");
  assert.equal(error.status, 404);
  assert.equal(error.field, "session_id");
  assert.equal(error.value, "nothing");
  assert.ok(error.remedy && error.message.endsWith(error.remedy));
  assert.ok(error.requestId);
});

test("a value that can't be accepted is Invalid, and names the field", async () => {
  const client = server.connect();
  const blank = await thrown(client.recall({ query: " " }));
  assert.ok(blank instanceof Invalid);
  assert.equal(blank.field, "query");
  assert.equal(blank.code, "invalid");
  const unknown = await thrown(client.recall({ query: "x", colour: "red" } as unknown as { query: string }));
  assert.ok(unknown instanceof Invalid);
  assert.equal(unknown.field, "colour");
});

test("another call under the same key is a Conflict", async () => {
  const client = server.connect();
  await client.sessions.create({ session_id: "a" }, { idempotencyKey: "mine" });
  const error = await thrown(client.sessions.create({ session_id: "b" }, { idempotencyKey: "mine" }));
  assert.ok(error instanceof Conflict);
  assert.equal(error.status, 409);
});

test("without a good key, or with one for something else, it is Forbidden", async () => {
  const wrong = await thrown(server.connect("default", { apiKey: "hf_wrong" }).datasets());
  assert.ok(wrong instanceof Forbidden);
  assert.equal(wrong.status, 401);
  assert.equal(wrong.code, "key_invalid");
  const reader = await server.connect().keys.create({ name: "reader", scopes: ["read"] });
  const client = server.connect("default", { apiKey: reader.api_key });
  assert.deepEqual(await client.datasets(), []);
  const error = await thrown(client.remember({ texts: "x" }));
  assert.ok(error instanceof Forbidden);
  assert.equal(error.code, "scope_missing");
});

test("a server that is not there is Unavailable", async () => {
  const proxy = await Proxy.before(server.url);
  const { url } = proxy;
  proxy.close();
  const error = await thrown(connect(url, { apiKey: "x" }).datasets());
  assert.ok(error instanceof Unavailable);
  assert.equal(error.code, "server_unreachable");
  assert.match(error.message, /ECONNREFUSED.*tried 4 times/);
});

test("an answer that is not Heedful's is Unavailable", async () => {
  const answers = [
    new Response("<html>welcome</html>"),
    new Response("<html>nothing here</html>", { status: 404 }),
    new Response("", { status: 302, headers: { Location: "https://elsewhere.example/" } }),
  ];
  for (const answer of answers) {
    const error = await thrown(connect(server.url, { fetch: async () => answer }).datasets());
    assert.ok(error instanceof Unavailable);
    assert.equal(error.code, "not_heedful");
    assert.equal(error.status, answer.status);
  }
});

test("without a key it says where one is taken from, and an address with a path is a wrong one", async () => {
  const missing = await thrown(connect(server.url).datasets());
  assert.equal(missing.code, "key_missing");
  assert.equal(missing.remedy, "Set HEEDFUL_API_KEY, or pass apiKey");
  const lost = await thrown(connect(`${server.url}/app`, { apiKey: server.key }).datasets());
  assert.equal(lost.code, "not_heedful");
});

test("an error without a document still has its kind", async () => {
  for (const [status, kind] of [[401, Forbidden], [403, Forbidden], [413, Invalid], [501, Unavailable]] as const) {
    const answer = new Response("", { status, headers: { "X-Request-Id": "seen" } });
    const error = await thrown(connect(server.url, { fetch: async () => answer }).datasets());
    assert.ok(error instanceof kind);
    assert.equal(error.requestId, "seen");
  }
});

test("what can't be sent is Invalid, and nothing is sent", async () => {
  const client = connect(server.url, { fetch: () => assert.fail("it was sent") });
  const cyclic: Record<string, unknown> = {};
  cyclic["itself"] = cyclic;
  const calls: [string | undefined, Promise<unknown>][] = [
    ["session_id", client.sessions.get("")],
    ["session_id", client.sessions.get("..")],
    ["session_id", client.sessions.get("\ud800")],
    ["session_id", client.sessions.get(undefined as unknown as string)],
    ["feedback_score", client.sessions.addFeedback("a", "b", { feedback_score: NaN })],
    ["idempotencyKey", client.sessions.create({}, { idempotencyKey: "a\nb" })],
    ["timeout", client.datasets({ timeout: -1 })],
    ["fields", client.recall("a text" as unknown as { query: string })],
    [undefined, client.sessions.create({ metadata: cyclic })],
  ];
  for (const [field, call] of calls) {
    const error = await thrown(call);
    assert.ok(error instanceof Invalid);
    assert.equal(error.field, field);
  }
});

test("a connection that can't work is Invalid at once", () => {
  for (const url of ["", "localhost:8000", "ftp://host", "http://host/?a=b", "http://ada:pw@host"]) {
    assert.throws(() => connect(url), { name: "Invalid", field: "url" });
  }
  assert.throws(() => connect(server.url, { apiKey: "a key" }), { name: "Invalid", field: "apiKey" });
  assert.throws(() => connect(server.url, { timeout: 0 }), { name: "Invalid", field: "timeout" });
  assert.throws(() => new HindsightClient({ bankId: "" }), { name: "Invalid", field: "bankId" });
});

test("the key is not shown with the client", async () => {
  const { inspect } = await import("node:util");
  const shown = inspect([server.connect(), new HindsightClient({ bankId: "a", baseUrl: server.url, apiKey: server.key })], {
    depth: 10,
    showHidden: true,
  });
  assert.ok(!shown.includes(server.key));
});
