/** One call: sent, sent again when that may help, and ended when its time is up. */

import { type Answer, asked, mayPass, resultOf } from "./answer.js";
import { Invalid, Unavailable } from "./errors.js";
import { answerOf, reason } from "./events.js";
import type { Operation } from "./operation.js";
import { argumentsOf, type Connection, type Options, requestOf, type Sending } from "./request.js";

const ATTEMPTS = 4;

/** How many times as long calls may take that are known to be slow. */
const SLOWER = 10;

/** The longest that a timer can wait. */
const LONGEST = 2 ** 31 - 1;

/** Calls a method of the engine on the server. */
export async function call(connection: Connection, operation: Operation, given: readonly unknown[]): Promise<unknown> {
  const known = argumentsOf(operation, given);
  const request = requestOf(connection, operation, known);
  const usual = operation.slow ? connection.timeout * SLOWER : connection.timeout;
  return limited(known.options, usual, async (signal) => {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await sent(connection, request, signal);
      if (attempt === ATTEMPTS || !mayPass(answer)) return resultOf(operation, answer, attempt);
      await pause(Math.max(asked(answer), Math.min(8000, 100 * 2 ** attempt) * (0.5 + Math.random() / 2)), signal);
    }
  });
}

/** Checks a time that is given in milliseconds. */
export function milliseconds(given: unknown): number {
  if (typeof given === "number" && given > 0) return given;
  throw new Invalid({ message: `timeout must be milliseconds above 0, got ${given}`, field: "timeout", value: given });
}

async function limited<Result>(
  options: Options,
  usual: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { signal } = options;
  const timeout = options.timeout === undefined ? usual : milliseconds(options.timeout);
  signal?.throwIfAborted();
  const controller = new AbortController();
  const forward = (): void => controller.abort(signal?.reason);
  signal?.addEventListener("abort", forward);
  const timer = setTimeout(() => controller.abort(late(timeout)), Math.min(timeout, LONGEST));
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", forward);
  }
}

function late(timeout: number): Unavailable {
  return new Unavailable({
    message: `there was no answer within ${timeout} ms; it may or may not have been done`,
    code: "server_timeout",
    remedy: "Allow more: {timeout: MILLISECONDS}; what has an idempotencyKey may be sent again",
  });
}

async function sent(connection: Connection, request: Sending, signal: AbortSignal): Promise<Answer> {
  const { url, method, headers, body, callbacks } = request;
  let answer: Answer;
  try {
    const response = await connection.fetch(url, { method, headers, body, signal, redirect: "manual" });
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      answer = await streamed(response, callbacks);
    } else {
      answer = { status: response.status, content: await response.text(), headers: response.headers };
    }
  } catch (error) {
    if (error instanceof Thrown) throw error.cause;
    answer = { status: 0, content: "", headers: new Headers(), problem: reason(error) };
  }
  // Whatever an aborted exchange looks like, it was ended on purpose.
  signal.throwIfAborted();
  return answer;
}

/** What a callback of the caller threw; it is no problem of the network. */
class Thrown extends Error {}

async function streamed(response: Response, callbacks: Sending["callbacks"]): Promise<Answer> {
  try {
    return await answerOf(response, callbacks);
  } catch (cause) {
    throw new Thrown("", { cause });
  }
}

function pause(duration: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", ended);
      resolve();
    }, duration);
    signal.addEventListener("abort", ended, { once: true });
  });
}
