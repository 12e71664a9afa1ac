import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to a request: an answer in the server's place, or a connection that is cut or stays silent. */
export type Mishap =
  | { status: number; headers?: Record<string, string>; body?: unknown }
  | "cut before it arrives"
  | "cut after it was done"
  | "silence";

export interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
}

/** Stands before a server; the first requests meet mishaps, in order. */
export class Proxy {
  readonly seen: Seen[] = [];
  private readonly mishaps: Mishap[] = [];

  private constructor(
    private readonly target: string,
    private readonly server: Server,
  ) {}

  static async before(target: string): Promise<Proxy> {
    const server = createServer();
    const proxy = new Proxy(target, server);
    server.on("request", (request, response) => void proxy.answer(request, response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Says what happens to the next requests; those seen so far are forgotten. */
  expect(...mishaps: Mishap[]): void {
    this.seen.length = 0;
    this.mishaps.splice(0, this.mishaps.length, ...mishaps);
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers });
    const mishap = this.mishaps.shift();
    if (mishap === "silence") return;
    if (mishap === "cut before it arrives") return void request.socket.destroy();
    if (typeof mishap === "object") {
      response.writeHead(mishap.status, { "Content-Type": "application/problem+json", ...mishap.headers });
      return void response.end(JSON.stringify(mishap.body ?? {}));
    }
    const { host: _host, connection: _connection, "content-length": _length, ...headers } = request.headers;
    const answer = await fetch(this.target + request.url, {
      method: request.method ?? "GET",
      headers: headers as Record<string, string>,
      body: chunks.length ? Buffer.concat(chunks) : null,
    });
    const content = Buffer.from(await answer.arrayBuffer());
    if (mishap === "cut after it was done") return void request.socket.destroy();
    const { "content-length": _size, ...told } = Object.fromEntries(answer.headers);
    response.writeHead(answer.status, told);
    response.end(content);
  }
}
