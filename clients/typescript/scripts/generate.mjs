// Writes src/schema.ts from the server's description of its API; with --check, says whether the file is stale.
// The description is read from the Python package: PYTHON names an interpreter that has it.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

import { schemaFile } from "./schema-file.mjs";

const FILE = new URL("../src/schema.ts", import.meta.url);
const PRINT = "import sys; from heedful.interfaces.http.openapi import description; sys.stdout.buffer.write(description())";

const python = process.env.PYTHON ?? "python3";
const description = execFileSync(python, ["-c", PRINT], { maxBuffer: 1 << 26, encoding: "utf8" });
const text = schemaFile(JSON.parse(description));

if (!process.argv.includes("--check")) {
  writeFileSync(FILE, text);
} else if (readFileSync(FILE, "utf8") !== text) {
  console.error("src/schema.ts is not what the server's description says. Run: npm run generate");
  process.exitCode = 1;
}
