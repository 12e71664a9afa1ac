/** A call, made into a request. */

import { Invalid } from "./errors.js";
import type { ChangeOptions, Extras, Operation } from "./operation.js";

/** Where and as whom to call. */
export interface Connection {
  readonly url: string;
  readonly project: string;
  readonly apiKey: string | undefined;
  readonly timeout: number;
  readonly fetch: typeof fetch;
}

/** What can be sent, as often as needed. */
export interface Sending {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
  /** What to call for each event of a stream; no stream is asked for if there are none. */
  readonly callbacks: Readonly<Record<string, (...given: unknown[]) => void>>;
}

export type Options = ChangeOptions & Extras;
type Fields = Record<string, unknown>;

/** The arguments of a method: those in the path, then its fields, then its options. */
export interface Arguments {
  readonly places: Readonly<Record<string, unknown>>;
  readonly fields: Fields;
  readonly options: Options;
}

/** Tells the arguments of a method apart. */
export function argumentsOf(operation: Operation, given: readonly unknown[]): Arguments {
  const names = operation.places;
  const rest = given.slice(names.length);
  const fields = operation.fields ? rest.shift() : undefined;
  return {
    places: Object.fromEntries(names.map((name, index) => [name, given[index]])),
    fields: checked("fields", fields),
    options: checked("options", rest[0]),
  };
}

/** The request of a call. */
export function requestOf(connection: Connection, operation: Operation, { places, fields, options }: Arguments): Sending {
  const project = `/v1/projects/${segment("project", connection.project)}`;
  const path = operation.path
    .replace("{project}", () => project)
    .replace(/{(\w+)}/g, (_, name: string) => segment(name, places[name]));
  const callbacks = callbacksOf(operation, options);
  const body = operation.fields === "body" ? json(fields) : null;
  return {
    url: connection.url + path + (operation.fields === "query" ? query(fields) : ""),
    method: operation.method,
    headers: headersOf(connection, operation, options, body !== null, Object.keys(callbacks).length > 0),
    body,
    callbacks,
  };
}

function checked(name: string, given: unknown): Fields {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object" || Array.isArray(given)) {
    throw new Invalid({ message: `${name} must be an object, got ${shown(given)}`, field: name, value: given });
  }
  return given as Fields;
}

function callbacksOf(operation: Operation, options: Options): Sending["callbacks"] {
  const found: Record<string, (...given: unknown[]) => void> = {};
  for (const [event, option] of Object.entries(operation.callbacks ?? {})) {
    const callback = (options as Fields)[option];
    if (callback !== undefined) found[event] = callback as (...given: unknown[]) => void;
  }
  return found;
}

function headersOf(
  connection: Connection,
  operation: Operation,
  options: Options,
  body: boolean,
  stream: boolean,
): Headers {
  const headers = new Headers({
    Accept: stream ? "text/event-stream" : operation.text ? "text/plain" : "application/json",
  });
  if (connection.apiKey !== undefined) headers.set("Authorization", `Bearer ${connection.apiKey}`);
  if (body) headers.set("Content-Type", "application/json");
  if (options.idempotencyKey !== undefined) {
    headers.set("Idempotency-Key", printable("idempotencyKey", options.idempotencyKey));
  } else if (operation.once) {
    headers.set("Idempotency-Key", newKey());
  }
  if (options.ifMatch !== undefined) headers.set("If-Match", `"${printable("ifMatch", options.ifMatch)}"`);
  return headers;
}

/** A text that a header can carry. */
export function printable(name: string, value: unknown): string {
  if (typeof value === "string" && /^[!-~]+$/.test(value)) return value;
  throw new Invalid({ message: `${name} must be letters, digits and signs without spaces`, field: name });
}

function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function segment(name: string, value: unknown): string {
  if (typeof value !== "string" || !value) {
    throw new Invalid({ message: `${name} must be a non-empty string, got ${shown(value)}`, field: name, value });
  }
  if (value === "." || value === "..") {
    throw new Invalid({ message: `${name} is ${shown(value)}, which an address can't hold`, field: name, value });
  }
  try {
    return encodeURIComponent(value);
  } catch {
    throw new Invalid({ message: `${name} must be valid Unicode`, field: name });
  }
}

function query(fields: Fields): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue;
    for (const each of Array.isArray(value) ? value : [value]) {
      pairs.append(name, typeof each === "string" ? each : json(each).replace(/^"|"$/g, ""));
    }
  }
  const text = pairs.toString();
  return text && `?${text}`;
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value, finite);
  } catch (error) {
    if (error instanceof Invalid) throw error;
    throw new Invalid({
      message: `what was given can't be sent as JSON (${error instanceof Error ? error.message : error})`,
      remedy: "Use texts, numbers and lists",
    });
  }
}

/** JSON would make null of a number that is none, and null means something else. */
function finite(name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new Invalid({ message: `${name} must be a number, got ${value}`, field: name });
  }
  return value;
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
