import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { PACKAGE, PYTHON } from "./server.js";

const NOTHING: Record<string, string> = {};

function read(path: string): string {
  return readFileSync(new URL(path, PACKAGE), "utf8");
}

test("the package has the version of the server, and depends on nothing", () => {
  const known = JSON.parse(read("package.json")) as { version: string; dependencies?: Record<string, string> };
  const version = execFileSync(PYTHON, ["-c", "import heedful; print(heedful.__version__)"], { encoding: "utf8" });
  assert.equal(known.version, version.trim());
  assert.deepEqual(known.dependencies ?? NOTHING, NOTHING);
});

test("what is built runs in a browser: it imports nothing but itself", () => {
  const files = readdirSync(new URL("dist/", PACKAGE)).filter((name) => name.endsWith(".js"));
  assert.ok(files.includes("index.js"));
  for (const file of files) {
    assert.doesNotMatch(read(`dist/${file}`), /\b(require|import)\(/);
    for (const [, name] of read(`dist/${file}`).matchAll(/^(?:import|export) .*from "(.+)";$/gm)) {
      assert.match(name!, /^\.\//, file);
    }
  }
});

test("the types are those of the server", () => {
  execFileSync(process.execPath, ["scripts/generate.mjs", "--check"], { cwd: PACKAGE, stdio: "inherit" });
});

for (const version of [6, 7]) {
  test(`npm installs it beside version ${version} of the AI SDK`, (context) => {
    const folder = mkdtempSync(join(tmpdir(), "heedful-"));
    context.after(() => rmSync(folder, { recursive: true }));
    const npm = (...given: string[]): string => execFileSync("npm", given, { cwd: folder, encoding: "utf8" });
    const packed = npm("pack", "--silent", "--ignore-scripts", fileURLToPath(PACKAGE)).trim();
    writeFileSync(join(folder, "package.json"), "{}");
    npm("install", "--silent", "--dry-run", "--prefer-offline", `./${packed}`, `ai@^${version}`, "zod@^4");
  });
}

test("the lock names no registry", () => {
  assert.doesNotMatch(read("package-lock.json"), /"resolved"|https?:\/\/registry/);
});
