/** Every example for TypeScript is compiled and run, and what it shows is what comes out. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { PACKAGE, serve } from "./server.js";

const PAGES = ["README.md", "../../docs/howto/typescript.md", "../../docs/integrations/vercel-ai-sdk.md"];
/** What a page leaves to its reader: a model. */
const MODEL = `
import { MockLanguageModelV3 } from "ai/test";
const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const content = [{ type: "text" as const, text: "The gym opens at six. [1]" }];
const model = new MockLanguageModelV3({
  doGenerate: async () => ({ content, finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] }),
});
`;
const SERVER = "http://127.0.0.1:8000";
const TSC = createRequire(import.meta.url).resolve("typescript/bin/tsc");

function blocks(page: string, kind: string): string {
  const text = readFileSync(new URL(page, PACKAGE), "utf8");
  return Array.from(text.matchAll(/^```(\w*)\n(.*?)^```$/gms), ([, found, body]) => (found === kind ? body : "")).join("");
}

PAGES.forEach((page, place) => {
  test(`the examples of ${page}`, async () => {
    const server = await serve();
    try {
      const folder = new URL(`build/pages/${place}/`, PACKAGE);
      mkdirSync(folder, { recursive: true });
      const source = (page.includes("ai-sdk") ? MODEL : "") + blocks(page, "typescript");
      writeFileSync(new URL("page.ts", folder), source.replaceAll(SERVER, server.url));
      const config = { extends: "../../../test/tsconfig.json", compilerOptions: { rootDir: ".", outDir: "." }, files: ["page.ts"], include: [] };
      writeFileSync(new URL("tsconfig.json", folder), JSON.stringify(config));
      execFileSync(process.execPath, [TSC, "-p", fileURLToPath(folder)], { stdio: "inherit" });
      const env = { ...process.env, HEEDFUL_API_KEY: server.key };
      const printed = execFileSync(process.execPath, ["page.js"], { cwd: folder, env, encoding: "utf8" });
      assert.equal(printed, blocks(page, "text"));
    } finally {
      await server.stop();
    }
  });
});
