/** The AI SDK of Vercel: a middleware for language models, and tools. */

import type { LanguageModelMiddleware, Tool, jsonSchema as JsonSchema } from "ai";

import { Conflict, Invalid, NotFound } from "./errors.js";
import { asPrompt } from "./prompt.js";
import type { Heedful } from "./schema.js";

/** Options of `heedfulMiddleware`. */
export interface HeedfulOptions {
  /** The session of the answers, unless a call names another. */
  sessionId: string;
  /** An id of your own for the answer, by which it is rated: `memory.sessions.rate(externalId, { rating: "up" })`. Only for a
   * middleware that answers one question: others take it from the call. */
  externalId?: string;
  /** Where facts are recalled from, unless a call names another; the main dataset if left out. */
  dataset?: string;
  /** How many are recalled, 5 if left out. */
  topK?: number;
  /** Which, by their metadata, unless a call says so: `{ user: { only: ["ada"] } }` are those of Ada and of everybody. */
  where?: Record<string, unknown>;
  /** Characters of memories in a prompt at most, 8,000 if left out. */
  maxCharacters?: number;
  /** Milliseconds that a model waits for one call of Heedful's, to recall or to store its answer; 2,000 if left out. */
  deadline?: number;
  /** Told of failures, once until it works again; `console.warn` if left out. */
  onError?: (error: unknown) => void;
}

/** A middleware, and what became of the answer. */
export type HeedfulMiddleware = LanguageModelMiddleware & {
  /** The entry of the last answer, for feedback; null before it is there, or if it could not be stored. Of each answer, it is
   * in `providerMetadata.heedful.qaId`. */
  readonly qaId: string | null;
};

type Transform = NonNullable<LanguageModelMiddleware["transformParams"]>;
type Params = Awaited<ReturnType<Transform>>;
type Generated = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>>;
type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
type Part = Streamed["stream"] extends ReadableStream<infer Each> ? Each : never;

/** Milliseconds after a failure in which nothing is tried. */
const PAUSE = 30_000;

/** Memories that fail, and when they are tried again; the log says it once. */
const FAILING = new WeakMap<Heedful, number>();

/** Characters of a question that a server takes. */
const MAX_QUESTION = 10_000;

const MAIN_DATASET = "main_dataset";

/** Questions of one middleware that are being answered at most. */
const MAX_TURNS = 1_000;

/**
 * Recalls before a model answers, and stores the answer:
 * `wrapLanguageModel({ model, middleware: heedfulMiddleware(memory, { sessionId }) })`.
 *
 * Calls may be made at the same time, also for several users. Each may have ids, a dataset and conditions of its own:
 * `generateText({ model, prompt, providerOptions: { heedful: { sessionId, externalId, dataset, where } } })`.
 *
 * Calls of tools in between recall nothing again, and store nothing. If Heedful fails, or takes longer than the deadline, the model
 * answers without memories, and Heedful is tried again after 30 seconds.
 */
export function heedfulMiddleware(memory: Heedful, options: HeedfulOptions): HeedfulMiddleware {
  /** Of the calls that were given memories; the AI SDK hands on the same parameters. */
  const calls = new WeakMap<object, Turn>();
  /** By question, for the calls after those of tools. */
  const open = new Map<string, Turn>();
  let last: string | null = null;

  async function store(params: Params, answer: string, reason: Generated["finishReason"] | undefined) {
    const turn = calls.get(params);
    if (turn === undefined || answer.trim() === "" || reason?.unified === "tool-calls") return undefined;
    if (open.get(turn.key) === turn) open.delete(turn.key);
    last = await turn.store(answer);
    return last === null ? undefined : { heedful: { qaId: last } };
  }

  return {
    specificationVersion: "v3",
    get qaId() {
      return last;
    },
    transformParams: async ({ params }) => {
      const asked = question(params);
      if (asked === null) return params;
      // A call that begins with the user's words begins a turn, unless it is the same one again.
      const isStep = params.prompt.at(-1)?.role !== "user";
      const turn = calls.get(params.prompt) ?? (isStep ? open.get(asked.key) : undefined) ?? new Turn(memory, options, asked);
      calls.set(params.prompt, turn);
      open.delete(turn.key);
      open.set(turn.key, turn);
      if (open.size > MAX_TURNS) open.delete(open.keys().next().value!);
      const shown = await turn.show(params);
      calls.set(shown, turn);
      return shown;
    },
    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      const text = result.content.map((each) => (each.type === "text" ? each.text : "")).join("");
      const stored = await store(params, text, result.finishReason);
      return stored === undefined ? result : { ...result, providerMetadata: { ...result.providerMetadata, ...stored } };
    },
    wrapStream: async ({ doStream, params }) => {
      const result = await doStream();
      let text = "";
      let isStored = false;
      const watched = new TransformStream<Part, Part>({
        async transform(part, controller) {
          if (part.type === "text-delta") text += part.delta;
          if (part.type !== "finish") return controller.enqueue(part);
          isStored = true;
          const stored = await store(params, text, part.finishReason);
          controller.enqueue(stored === undefined ? part : { ...part, providerMetadata: { ...part.providerMetadata, ...stored } });
        },
        flush: async () => {
          if (!isStored) await store(params, text, undefined);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(watched) };
    },
  };
}

/** What a call asks, how its later steps are recognized, and its own options. */
interface Question {
  text: string;
  key: string;
  given: Pick<HeedfulOptions, "externalId" | "dataset" | "where"> & { sessionId?: string };
}

/** One question, and its answer. */
class Turn {
  readonly key: string;
  #recalled: Promise<void> | undefined;
  #prompt = "";
  #recallId: string | undefined;

  constructor(
    private readonly memory: Heedful,
    private readonly options: HeedfulOptions,
    private readonly question: Question,
  ) {
    this.key = question.key;
  }

  async show(params: Params): Promise<Params> {
    await (this.#recalled ??= this.#recall());
    if (this.#prompt === "") return { ...params };
    // Behind the caller's own instructions.
    const first = params.prompt.findIndex((message) => message.role !== "system");
    const place = first === -1 ? params.prompt.length : first;
    const prompt = [...params.prompt];
    prompt.splice(place, 0, { role: "system", content: this.#prompt });
    return { ...params, prompt };
  }

  /** The `qa_id` of the stored answer; null if Heedful fails. */
  async store(answer: string): Promise<string | null> {
    const { sessionId, externalId, deadline: timeout = 2_000 } = { ...this.options, ...this.question.given };
    const ids = defined({ recall_id: this.#recallId, external_id: externalId });
    const fields = { question: this.question.text, answer, ...ids };
    const entry = await this.#guarded(() => this.memory.sessions.addEntry(sessionId, fields, { timeout }));
    return entry?.qa_id ?? null;
  }

  async #recall(): Promise<void> {
    const { dataset, topK = 5, where, maxCharacters = 8_000, deadline: timeout = 2_000 } = { ...this.options, ...this.question.given };
    const fields = { query: this.question.text, top_k: topK, ...defined({ dataset, where }) };
    const recall = await this.#guarded(() => this.memory.recall(fields, { timeout }));
    if (recall === undefined) return;
    this.#prompt = asPrompt(recall.hits, maxCharacters);
    this.#recallId = recall.recall_id;
  }

  async #guarded<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    const again = FAILING.get(this.memory);
    if (again !== undefined) {
      if (Date.now() < again) return undefined;
      // The others wait for what becomes of this one.
      FAILING.set(this.memory, Date.now() + PAUSE);
    }
    try {
      const result = await work();
      FAILING.delete(this.memory);
      return result;
    } catch (error) {
      // What is wrong with one question says nothing of the next.
      const isAlone = error instanceof Invalid || error instanceof Conflict || error instanceof NotFound;
      const isTold = FAILING.has(this.memory);
      FAILING.set(this.memory, isAlone ? 0 : Date.now() + PAUSE);
      if (!isTold) {
        const tell = this.options.onError ?? ((each: unknown) => console.warn("Heedful fails, so the agent goes on without it:", each));
        tell(error);
      }
      return undefined;
    }
  }
}

/** Options of `heedfulTools`. */
export interface HeedfulToolOptions {
  /** Where facts are; the main dataset if left out. */
  dataset?: string;
  /** How many are recalled, 5 if left out. */
  topK?: number;
  /** Conditions on what may be recalled and corrected. What is remembered has their values as metadata, so each needs one:
   * `{ user: "ada" }`, or `{ user: { only: ["ada"] } }`, which everybody's facts pass as well. */
  where?: Record<string, unknown>;
  /** The session of the answers; one for each recall if left out. */
  sessionId?: string;
  /** Whose ratings they are. */
  author?: string;
}

/** What `heedfulTools` gives to a model. */
export type HeedfulTools = {
  remember: Tool<{ text: string }, { fact_ids: string[] }>;
  recall: Tool<{ query: string }, { recall_id: string; memories: string; fact_ids: string[] }>;
  answered: Tool<{ recall_id: string; question: string; answer: string }, { answer_id: string }>;
  rate: Tool<{ answer_id: string; rating: string; comment?: string }, { stored: boolean }>;
  correct: Tool<{ fact_id: string; text: string }, { fact_id: string }>;
};

/**
 * Tools by which a model remembers, recalls, rates and corrects by itself; `jsonSchema` is the function of the AI SDK:
 * `generateText({ model, tools: heedfulTools(memory, jsonSchema), … })`.
 */
export function heedfulTools(memory: Heedful, jsonSchema: typeof JsonSchema, options: HeedfulToolOptions = {}): HeedfulTools {
  const { dataset, topK = 5, where, sessionId, author } = options;
  const metadata = Object.fromEntries(Object.entries(where ?? {}).map(([name, condition]) => [name, only(name, condition)]));
  const remember: HeedfulTools["remember"] = {
    description: "Store a fact that will be useful in later conversations. Store one fact in one sentence.",
    inputSchema: jsonSchema(texts({ text: "The fact." })),
    execute: async ({ text }) => {
      const stored = await memory.remember({ texts: [text], metadata, ...defined({ dataset }) });
      return { fact_ids: stored.facts.map((fact) => fact.fact_id) };
    },
  };
  const recall: HeedfulTools["recall"] = {
    description:
      "Find facts that were stored earlier. Call it before you answer a question about what people, products or rules are like. " +
      "The fact_ids are in the order of the facts.",
    inputSchema: jsonSchema(texts({ query: "The question, in full." })),
    execute: async ({ query }) => {
      const found = await memory.recall({ query, top_k: topK, ...defined({ dataset, where }) });
      return { recall_id: found.recall_id, memories: asPrompt(found.hits), fact_ids: found.hits.map((hit) => hit.fact_id) };
    },
  };
  const answered: HeedfulTools["answered"] = {
    description: "Store the answer that you made from a recall, so that it can be rated. It returns the answer_id for rate.",
    inputSchema: jsonSchema(texts({ recall_id: "From recall.", question: "What was asked.", answer: "Your answer, as you gave it." })),
    execute: async ({ recall_id, question, answer }) => {
      const session = sessionId ?? `ai-${recall_id}`;
      const answer_id = `${session}/${crypto.randomUUID().slice(0, 8)}`;
      await memory.sessions.addEntry(session, { question, answer, recall_id, external_id: answer_id });
      return { answer_id };
    },
  };
  const rate: HeedfulTools["rate"] = {
    description: "Pass on what the user says of an earlier answer, with their words as the comment.",
    inputSchema: jsonSchema(
      texts({ answer_id: "From answered.", rating: "up, down, or 1 (worst) to 5 (best)." }, { comment: "What they said." }),
    ),
    execute: async ({ answer_id, rating, comment }) => {
      // A rating of an answer that is not there would wait for it.
      await memory.sessions.entry(answer_id.slice(0, Math.max(1, answer_id.lastIndexOf("/"))), answer_id);
      const given = /^[1-5]$/.test(rating.trim()) ? { rating: Number(rating), scale: [1, 5] } : { rating };
      const { status } = await memory.sessions.rate(answer_id, { ...given, ...defined({ comment, author }) });
      return { stored: status === "stored" };
    },
  };
  const correct: HeedfulTools["correct"] = {
    description: "Replace a fact that is wrong or outdated.",
    inputSchema: jsonSchema(texts({ fact_id: "From recall.", text: "What is right, in one sentence." })),
    execute: async ({ fact_id, text }) => {
      const fact = await memory.fact(fact_id);
      const passes = Object.entries(metadata).every(
        ([name, value]) => value === (fact.metadata[name] ?? (typeof where?.[name] === "object" ? value : undefined)),
      );
      if (fact.dataset !== (dataset ?? MAIN_DATASET) || !passes) {
        throw new NotFound({ message: `there is no fact ${JSON.stringify(fact_id)}`, field: "fact_id", value: fact_id });
      }
      const superseded = await memory.supersede(fact_id, { text, ...defined({ author }) });
      return { fact_id: superseded.superseded_by };
    },
  };
  return { remember, recall, answered, rate, correct };
}

/** What a fact has that passes a condition and is nobody else's. */
function only(name: string, condition: unknown): string | number | boolean {
  const isObject = typeof condition === "object" && condition !== null && Object.keys(condition).join() === "only";
  const choices = isObject ? (condition as { only: unknown }).only : condition;
  const value: unknown = Array.isArray(choices) && choices.length === 1 ? choices[0] : choices;
  if (!name.includes(".") && (typeof value === "string" || typeof value === "number" || typeof value === "boolean")) return value;
  throw new Invalid({ message: `the condition on ${name} has not one value, which a fact could have`, field: "where" });
}

function texts(required: Record<string, string>, optional: Record<string, string> = {}) {
  const properties = Object.fromEntries(
    Object.entries({ ...required, ...optional }).map(([name, description]) => [name, { type: "string" as const, description }]),
  );
  return { type: "object" as const, properties, required: Object.keys(required), additionalProperties: false };
}

/** What the user said last, and the ids that the call is given; null if that is no text. */
function question(params: Params): Question | null {
  const place = params.prompt.map((each) => each.role).lastIndexOf("user");
  const message = params.prompt[place];
  if (message?.role !== "user") return null;
  const parts = message.content.map((part) => (part.type === "text" ? part.text : ""));
  // Of a long one, such as a pasted log, the beginning; not with half a character at its end.
  const text = parts.join("\n").trim().slice(0, MAX_QUESTION).replace(/[\uD800-\uDBFF]$/, "");
  const options = params.providerOptions?.["heedful"] ?? {};
  const names = ["sessionId", "externalId", "dataset"].filter((name) => typeof options[name] === "string");
  if (typeof options["where"] === "object" && options["where"] !== null) names.push("where");
  const given: Question["given"] = Object.fromEntries(names.map((name) => [name, options[name]]));
  return text === "" ? null : { text, key: JSON.stringify([place, text, given]), given };
}

/** Without what is left out, which would be sent. */
function defined<Fields extends object>(fields: Fields): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
