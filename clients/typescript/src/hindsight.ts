/** Hindsight's client for feedback signals, on Heedful: a bank is a dataset. */

import { connect, type ConnectOptions, environment } from "./connect.js";
import { Invalid, NotFound } from "./errors.js";
import type { ChangeOptions, CallOptions } from "./operation.js";
import type { Heedful, Hit, RecallRequest, SignalResult } from "./schema.js";

/** Options of `HindsightClient`. */
export interface HindsightClientOptions extends ConnectOptions {
  /** The dataset that is recalled from. */
  bankId: string;
  /** The address of the server; HEEDFUL_URL of the environment if left out. */
  baseUrl?: string;
}

/** One opinion about one fact for one query. */
export interface SignalItem {
  factId: string;
  signalType: "used" | "ignored" | "helpful" | "not_helpful";
  /** From 0 to 1; 1 if left out. */
  confidence?: number;
  /** What was asked when the fact was recalled. */
  query: string;
  /** A note. */
  context?: string;
}

/** A recalled fact, under the name that Hindsight gives its id. */
export interface Memory extends Hit {
  id: string;
}

/** Recalls from one bank, and takes signals about its facts. */
export class HindsightClient {
  readonly bankId: string;
  readonly #heedful: Heedful;

  constructor({ bankId, baseUrl = environment("HEEDFUL_URL"), ...options }: HindsightClientOptions) {
    if (typeof bankId !== "string" || !bankId) {
      throw new Invalid({ message: "bankId must be a non-empty string", field: "bankId", value: bankId });
    }
    if (baseUrl === undefined) {
      throw new Invalid({ message: "no server is named", field: "baseUrl", remedy: "Pass baseUrl, or set HEEDFUL_URL" });
    }
    this.bankId = bankId;
    this.#heedful = connect(baseUrl, options);
  }

  /** Finds the facts that answer a query, best first; a bank without facts has none. */
  async recall(fields: Omit<RecallRequest, "dataset">, options?: CallOptions): Promise<Memory[]> {
    try {
      const { hits } = await this.#heedful.recall({ ...fields, dataset: this.bankId }, options);
      return hits.map((hit) => ({ id: hit.fact_id, ...hit }));
    } catch (error) {
      if (error instanceof NotFound && error.field === "dataset") return [];
      throw error;
    }
  }

  /** Says how useful facts were; facts that the bank doesn't have are listed in `errors`, and the others are applied. */
  async signal({ signals }: { signals: readonly SignalItem[] }, options?: ChangeOptions): Promise<SignalResult> {
    const given = signals.map(({ factId, signalType, ...rest }) => ({
      fact_id: factId,
      signal_type: signalType,
      ...rest,
    }));
    try {
      return await this.#heedful.signal({ signals: given, dataset: this.bankId }, options);
    } catch (error) {
      // Heedful refuses a call that names none of its facts; Hindsight lists them all the same.
      if (!(error instanceof NotFound && error.field === "fact_id")) throw error;
      const message = "the bank has no such fact";
      const errors = given.map(({ fact_id }, index) => ({ index, fact_id, code: "not_found", message }));
      return { processed: 0, updated_facts: [], errors, event_ids: [], signals: [] };
    }
  }
}
