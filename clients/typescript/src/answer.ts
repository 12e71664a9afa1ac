/** What came back, and what it means. */

import { errorOf, type HeedfulError, Unavailable } from "./errors.js";
import type { Operation } from "./operation.js";

/** What came back; status 0 with a problem if nothing did. */
export interface Answer {
  readonly status: number;
  readonly content: string;
  readonly headers: Headers;
  readonly problem?: string;
  /** Something of it has been shown already, so that it can't be asked for again unnoticed. */
  readonly shown?: boolean;
}

const etags = new WeakMap<object, string>();

/** What changes when a result changes: pass it as `ifMatch` to change only what you have seen. */
export function etag(result: object): string | undefined {
  return etags.get(result);
}

/** Whether sending it again may help; each request either has a key or does no harm twice. */
export function mayPass(answer: Answer): boolean {
  if (answer.shown) return false;
  if (answer.status === 409) return documentOf(answer).code === "in_progress";
  if (answer.status === 500 || answer.status === 503) {
    // A proxy says nothing of when to come back, and its servers may be back in a moment.
    return answer.headers.has("retry-after") || documentOf(answer).code === undefined;
  }
  return [0, 429, 502, 504].includes(answer.status);
}

/** How many milliseconds the server asks to wait, within reason; dates are not read. */
export function asked(answer: Answer): number {
  const given = answer.headers.get("retry-after") ?? "";
  return /^\d+$/.test(given) ? Math.min(30, Number(given)) * 1000 : 0;
}

/** The result of a call, or the error that it threw on the server. */
export function resultOf(operation: Operation, answer: Answer, attempts: number): unknown {
  if (answer.status === 0) {
    throw new Unavailable({
      message: `the server can't be reached: ${answer.problem} (tried ${attempts} times)`,
      code: "server_unreachable",
      remedy: "Check the address, and that heedful serve runs there",
    });
  }
  if (answer.status < 200 || answer.status > 299) {
    const error = errorFrom(answer);
    if (operation.missing !== undefined && error.code === `${operation.missing}_not_found`) return false;
    throw error;
  }
  if (operation.text) return answer.content;
  const result = parsed(answer.content);
  if (result === undefined) throw foreign(answer);
  const tag = answer.headers.get("etag");
  if (tag !== null && typeof result === "object" && result !== null) etags.set(result, tag.replace(/^(W\/)?"|"$/g, ""));
  return result;
}

function errorFrom(answer: Answer): HeedfulError {
  const { status } = answer;
  const document = documentOf(answer);
  if (document.code === "key_missing") document.remedy = "Set HEEDFUL_API_KEY, or pass apiKey";
  if (document.code === "no_route") return foreign(answer);
  const known = document.code !== undefined || [401, 403, 413, 429].includes(status) || status >= 500;
  return known ? errorOf(status, document, requestId(answer)) : foreign(answer);
}

/** Something answers, and it is not a server of Heedful's. */
function foreign(answer: Answer): Unavailable {
  const { status, headers } = answer;
  const location = headers.get("location");
  const to = location === null ? "" : `, and points to ${location}`;
  return new Unavailable({
    message: `what answers is not a Heedful server: ${status}, ${headers.get("content-type") ?? "no type"}${to}`,
    code: "not_heedful",
    remedy: "Check the address: http://host:port of heedful serve, without a path",
    requestId: requestId(answer),
    status,
  });
}

function requestId(answer: Answer): string | undefined {
  return answer.headers.get("x-request-id") ?? undefined;
}

function documentOf(answer: Answer): Record<string, unknown> {
  const document = parsed(answer.content);
  return typeof document === "object" && document !== null ? (document as Record<string, unknown>) : {};
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}
