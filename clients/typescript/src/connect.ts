/** Connecting to a server. */

import { Invalid } from "./errors.js";
import { call, milliseconds } from "./exchange.js";
import { type Connection, printable } from "./request.js";
import { type Heedful, OPERATIONS, type Page } from "./schema.js";

/** Options of `connect`. */
export interface ConnectOptions {
  /** A key or a token; HEEDFUL_API_KEY of the environment if left out. */
  apiKey?: string;
  /** "default" if left out. */
  project?: string;
  /** How many milliseconds a call may take, 60,000 if left out; ten times as long where it is known to be slow. */
  timeout?: number;
  /** What sends requests, if not the platform's own `fetch`. */
  fetch?: typeof fetch;
}

const KEY = "HEEDFUL_API_KEY";
const TIMEOUT = 60_000;

/**
 * Connects to a server: the same methods as in Python, over HTTP. Nothing is sent yet.
 *
 * Calls that fail in a way that may pass are sent again; they count once.
 */
export function connect(url: string, options: ConnectOptions = {}): Heedful {
  const apiKey = options.apiKey ?? environment(KEY);
  return clientOf({
    url: address(url),
    project: options.project ?? "default",
    apiKey: apiKey === undefined ? undefined : printable(options.apiKey === undefined ? KEY : "apiKey", apiKey),
    timeout: milliseconds(options.timeout ?? TIMEOUT),
    // Called by itself, or a browser refuses.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
  });
}

/** A variable of the environment, where there is one. */
export function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

function address(url: string): string {
  let known: URL | undefined;
  try {
    known = new URL(url);
  } catch {
    known = undefined;
  }
  if (known === undefined || !["http:", "https:"].includes(known.protocol) || known.search || known.hash) {
    throw new Invalid({
      message: `url is ${JSON.stringify(url)}`,
      field: "url",
      value: url,
      remedy: "Use http://host:port or https://host",
    });
  }
  if (known.username || known.password) {
    throw new Invalid({
      message: "url contains a user name or a password",
      field: "url",
      remedy: "Use http://host:port or https://host, and pass the key as apiKey",
    });
  }
  return known.href.replace(/\/+$/, "");
}

type Methods = Record<string, unknown>;

function clientOf(connection: Connection): Heedful {
  const client: Methods = {};
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const [verb = "", namespace] = name.split(".").reverse();
    const methods = namespace === undefined ? client : ((client[namespace] ??= {}) as Methods);
    const method = (...given: unknown[]): Promise<unknown> => call(connection, operation, given);
    methods[verb] = method;
    if (operation.iterate !== undefined) {
      methods[operation.iterate] = iterator(method as Paged, operation.places.length);
    }
  }
  return client as unknown as Heedful;
}

type Paged = (...given: unknown[]) => Promise<Page<unknown>>;

function iterator(method: Paged, places: number): (...given: unknown[]) => AsyncGenerator<unknown, void> {
  return async function* (...given) {
    let fields = given[places] as Methods | undefined;
    for (;;) {
      const page = await method(...given.slice(0, places), fields, given[places + 1]);
      yield* page.items;
      if (page.next_cursor === null) return;
      fields = { ...fields, cursor: page.next_cursor };
    }
  };
}
