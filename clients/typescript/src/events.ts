/** A stream of events: calls back for each, until the result or a problem comes. */

import type { Answer } from "./answer.js";
import type { Sending } from "./request.js";

/** Reads a stream to its end; what a callback throws ends it, and is thrown. */
export async function answerOf(response: Response, callbacks: Sending["callbacks"]): Promise<Answer> {
  let shown = false;
  let name = "";
  const lines = linesOf(response);
  for (;;) {
    const line = await lines.next().catch((error: unknown) => ({ error }));
    if ("error" in line || line.done) {
      const problem = "error" in line ? reason(line.error) : "the stream ended before the result";
      return { status: 0, content: "", headers: new Headers(), problem, shown };
    }
    if (line.value.startsWith("event: ")) name = line.value.slice(7);
    if (!line.value.startsWith("data: ")) continue;
    const data = line.value.slice(6);
    if (name === "result") return { status: 200, content: data, headers: response.headers };
    if (name === "problem") {
      const { status } = JSON.parse(data) as { status: number };
      return { status, content: data, headers: response.headers, shown };
    }
    const callback = callbacks[name];
    if (callback === undefined) continue;
    shown = true;
    try {
      callback(...(JSON.parse(data) as unknown[]));
    } catch (error) {
      await lines.return().catch(() => undefined);
      throw error;
    }
  }
}

/** Why nothing came back, in a few words. */
export function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  return cause.message || (cause as { code?: string }).code || cause.name;
}

async function* linesOf(response: Response): AsyncGenerator<string, void> {
  const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
