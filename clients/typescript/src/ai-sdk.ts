/** The AI SDK of Vercel: a middleware for language models, and tools. */

import type { LanguageModelMiddleware, Tool, jsonSchema as JsonSchema } from "ai";

import { asPrompt } from "./prompt.js";
import type { Heedful } from "./schema.js";

/** Options of `heedfulMiddleware`. */
export interface HeedfulOptions {
  /** The session of the answers. */
  sessionId: string;
  /** An id of your own for the answer, by which it is rated: `memory.sessions.rate(externalId, { rating: "up" })`. */
  externalId?: string;
  /** Where facts are recalled from; the main dataset if left out. */
  dataset?: string;
  /** How many are recalled, 5 if left out. */
  topK?: number;
  /** Which, by their metadata. */
  where?: Record<string, unknown>;
  /** Characters of memories in a prompt at most, 8,000 if left out. */
  maxCharacters?: number;
  /** Told of failures, once until it works again; `console.warn` if left out. */
  onError?: (error: unknown) => void;
}

/** A middleware, and what became of the answer. */
export type HeedfulMiddleware = LanguageModelMiddleware & {
  /** The entry of the answer, for feedback; null before it is there, or if it could not be stored. */
  readonly qaId: string | null;
};

type Transform = NonNullable<LanguageModelMiddleware["transformParams"]>;
type Params = Awaited<ReturnType<Transform>>;
type Generated = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>>;
type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
type Part = Streamed["stream"] extends ReadableStream<infer Each> ? Each : never;

/** Milliseconds that a model waits for one call of Heedful's: to recall, and to store its answer. */
const DEADLINE = 2_000;

/** Memories that fail, so that the log says it once. */
const FAILING = new WeakSet<Heedful>();

/**
 * Recalls before a model answers, and stores the answer. Make one for each question:
 * `wrapLanguageModel({ model, middleware: heedfulMiddleware(memory, { sessionId, externalId }) })`.
 *
 * Calls of tools in between recall nothing again, and store nothing. If Heedful fails, or takes longer than two seconds, the model
 * answers without memories.
 */
export function heedfulMiddleware(memory: Heedful, options: HeedfulOptions): HeedfulMiddleware {
  const turn = new Turn(memory, options);
  return {
    specificationVersion: "v3",
    get qaId() {
      return turn.qaId;
    },
    transformParams: async ({ params }) => turn.show(params),
    wrapGenerate: async ({ doGenerate }) => {
      const result = await doGenerate();
      const text = result.content.map((each) => (each.type === "text" ? each.text : "")).join("");
      await turn.store(text, result.finishReason);
      return result;
    },
    wrapStream: async ({ doStream }) => {
      const result = await doStream();
      let text = "";
      let reason: Generated["finishReason"] | undefined;
      const watched = new TransformStream<Part, Part>({
        transform(part, controller) {
          if (part.type === "text-delta") text += part.delta;
          if (part.type === "finish") reason = part.finishReason;
          controller.enqueue(part);
        },
        flush: () => turn.store(text, reason),
      });
      return { ...result, stream: result.stream.pipeThrough(watched) };
    },
  };
}

/** One question, and its answer. */
class Turn {
  qaId: string | null = null;
  #question: string | undefined;
  #prompt = "";
  #recallId: string | undefined;

  constructor(
    private readonly memory: Heedful,
    private readonly options: HeedfulOptions,
  ) {}

  async show(params: Params): Promise<Params> {
    const question = lastQuestion(params);
    if (question !== "" && question !== this.#question) {
      this.#question = question;
      this.#prompt = "";
      this.#recallId = undefined;
      await this.#guarded(async () => {
        const { dataset, topK = 5, where, maxCharacters = 8_000 } = this.options;
        const recall = await this.memory.recall({ query: question, top_k: topK, ...defined({ dataset, where }) }, { timeout: DEADLINE });
        this.#prompt = asPrompt(recall.hits, maxCharacters);
        this.#recallId = recall.recall_id;
      });
    }
    if (this.#prompt === "") return params;
    // Behind the caller's own instructions.
    const first = params.prompt.findIndex((message) => message.role !== "system");
    const place = first === -1 ? params.prompt.length : first;
    const prompt = [...params.prompt];
    prompt.splice(place, 0, { role: "system", content: this.#prompt });
    return { ...params, prompt };
  }

  async store(answer: string, reason: Generated["finishReason"] | undefined): Promise<void> {
    const question = this.#question;
    if (question === undefined || answer.trim() === "" || reason?.unified === "tool-calls") return;
    await this.#guarded(async () => {
      const { sessionId, externalId } = this.options;
      const ids = defined({ recall_id: this.#recallId, external_id: externalId });
      const entry = await this.memory.sessions.addEntry(sessionId, { question, answer, ...ids }, { timeout: DEADLINE });
      this.qaId = entry.qa_id;
    });
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      FAILING.delete(this.memory);
    } catch (error) {
      if (!FAILING.has(this.memory)) {
        FAILING.add(this.memory);
        const tell = this.options.onError ?? ((each: unknown) => console.warn("Heedful fails, so the agent goes on without it:", each));
        tell(error);
      }
    }
  }
}

/** Options of `heedfulTools`. */
export interface HeedfulToolOptions {
  /** Where facts are; the main dataset if left out. */
  dataset?: string;
  /** How many are recalled, 5 if left out. */
  topK?: number;
  /** Whose ratings they are. */
  author?: string;
}

/** What `heedfulTools` gives to a model. */
export type HeedfulTools = {
  remember: Tool<{ text: string }, { fact_ids: string[] }>;
  recall: Tool<{ query: string }, { recall_id: string; memories: string }>;
  rate: Tool<{ id: string; rating: string; comment?: string }, { stored: boolean }>;
};

/**
 * Tools by which a model remembers, recalls and rates by itself; `jsonSchema` is the function of the AI SDK:
 * `generateText({ model, tools: heedfulTools(memory, jsonSchema), … })`.
 */
export function heedfulTools(memory: Heedful, jsonSchema: typeof JsonSchema, options: HeedfulToolOptions = {}): HeedfulTools {
  const { dataset, topK = 5, author } = options;
  const remember: HeedfulTools["remember"] = {
    description: "Store a fact that will be useful in later conversations. Store one fact in one sentence.",
    inputSchema: jsonSchema(texts({ text: "The fact." })),
    execute: async ({ text }) => {
      const stored = await memory.remember({ texts: [text], ...defined({ dataset }) });
      return { fact_ids: stored.facts.map((fact) => fact.fact_id) };
    },
  };
  const recall: HeedfulTools["recall"] = {
    description: "Find facts that were stored earlier. Call it before you answer a question about what people, products or rules are like.",
    inputSchema: jsonSchema(texts({ query: "The question, in full." })),
    execute: async ({ query }) => {
      const found = await memory.recall({ query, top_k: topK, ...defined({ dataset }) });
      return { recall_id: found.recall_id, memories: asPrompt(found.hits) };
    },
  };
  const rate: HeedfulTools["rate"] = {
    description: 'Pass on what the user says of an earlier answer: "up" or "down", with their words as the comment.',
    inputSchema: jsonSchema(texts({ id: "The id of the answer.", rating: "up or down." }, { comment: "What they said." })),
    execute: async ({ id, rating, comment }) => ({
      stored: await memory.sessions.rate(id, { rating, ...defined({ comment, author }) }),
    }),
  };
  return { remember, recall, rate };
}

function texts(required: Record<string, string>, optional: Record<string, string> = {}) {
  const properties = Object.fromEntries(
    Object.entries({ ...required, ...optional }).map(([name, description]) => [name, { type: "string" as const, description }]),
  );
  return { type: "object" as const, properties, required: Object.keys(required), additionalProperties: false };
}

/** What the user said last. */
function lastQuestion(params: Params): string {
  const message = [...params.prompt].reverse().find((each) => each.role === "user");
  if (message?.role !== "user") return "";
  return message.content
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("\n")
    .trim();
}

/** Without what is left out, which would be sent. */
function defined<Fields extends object>(fields: Fields): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
