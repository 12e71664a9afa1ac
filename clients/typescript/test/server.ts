import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { connect, type ConnectOptions, type Heedful } from "heedful";

/** The folder of the package. */
export const PACKAGE = new URL("../../", import.meta.url);

export const PYTHON = process.env["PYTHON"] ?? "python3";

/** A real server that runs. */
export class Server {
  constructor(
    readonly url: string,
    readonly key: string,
    private readonly child: ChildProcess,
  ) {}

  connect(project = "default", options: ConnectOptions & { url?: string } = {}): Heedful {
    const { url = this.url, ...rest } = options;
    return connect(url, { apiKey: this.key, project, ...rest });
  }

  async stop(): Promise<void> {
    const ended = once(this.child, "exit");
    this.child.stdin?.end();
    await ended;
  }
}

/** Starts a server on an empty store. */
export async function serve(settings: Record<string, unknown> = {}): Promise<Server> {
  const script = fileURLToPath(new URL("test/serve.py", PACKAGE));
  const child = spawn(PYTHON, [script, JSON.stringify(settings)], { stdio: ["pipe", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const { url, key } = JSON.parse(line) as { url: string; key: string };
    return new Server(url, key, child);
  }
  throw new Error("the server did not start");
}
