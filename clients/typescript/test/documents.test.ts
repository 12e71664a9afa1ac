/** The code for TypeScript of the document about facts, with only its import changed, where it lies beside the clone. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { PACKAGE, serve } from "./server.js";

const TSC = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const SEEDS = ["../../../", "../../../../"].map((each) => new URL(`${each}shared/seeds/`, PACKAGE)).find((each) => existsSync(each));
/** What the document leaves to its reader, and what it doesn't show: how the function is called. */
const AROUND = `
import type { Memory, SignalItem as Ours } from "heedful";
export const item: SignalItem = { factId: "x", signalType: "used", query: "q" } satisfies Ours;
async function generateResponse(_query: string, memories: Memory[]) { return memories[0]?.text ?? ""; }
function detectUsedFacts(response: string, memories: Memory[]) {
  return memories.filter((memory) => response.includes(memory.text)).map((memory) => memory.id);
}
console.log(JSON.stringify([recalled.length, results.length, await agentWithFeedback(query)]));
`;

test("the document about facts", { skip: SEEDS ? false : "NOT run: there is no ../shared/seeds beside this clone" }, async () => {
  assert.ok(SEEDS);
  const name = readdirSync(SEEDS).find((each) => each.startsWith("003_"));
  const text = readFileSync(new URL(name ?? "", SEEDS), "utf8");
  const blocks = Array.from(text.matchAll(/^```typescript\n(.*?)^```$/gms), ([, body]) => body ?? "");
  assert.equal(blocks.length, 4);
  const server = await serve();
  try {
    await server.connect().remember({ texts: ["Implement authentication with passkeys.", "Lunch is at noon."], dataset: "my-agent" });
    const folder = new URL("build/document/", PACKAGE);
    mkdirSync(folder, { recursive: true });
    // The second and the last block import the same name.
    const [first, ...others] = blocks.join("\n").split(/^import .* from "claude-cognitive";$/m);
    const page = `import { HindsightClient } from "heedful";\n${first}${others.join("")}${AROUND}`;
    writeFileSync(new URL("page.ts", folder), page);
    const config = { extends: "../../test/tsconfig.json", compilerOptions: { rootDir: ".", outDir: "." }, files: ["page.ts"], include: [] };
    writeFileSync(new URL("tsconfig.json", folder), JSON.stringify(config));
    execFileSync(process.execPath, [TSC, "-p", fileURLToPath(folder)], { stdio: "inherit" });
    const env = { ...process.env, HEEDFUL_URL: server.url, HEEDFUL_API_KEY: server.key };
    const printed = execFileSync(process.execPath, ["page.js"], { cwd: folder, env, encoding: "utf8" });
    assert.deepEqual(JSON.parse(printed), [2, 2, "Implement authentication with passkeys."]);
  } finally {
    await server.stop();
  }
});
