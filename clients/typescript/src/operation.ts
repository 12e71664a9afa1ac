/** How one method is called over the wire. */
export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Where it is; `{project}` stands for the place of the project. */
  readonly path: string;
  /** The parameters in the path, in order: the first arguments of the method. */
  readonly places: readonly string[];
  /** Where the next argument goes; there is none if this is missing. */
  readonly fields?: "body" | "query";
  /** Sent twice, it would count twice: it needs a key. */
  readonly once?: boolean;
  readonly slow?: boolean;
  /** What is not there when the result is false. */
  readonly missing?: string;
  /** Events of a stream, and the options that are called for them. */
  readonly callbacks?: Readonly<Record<string, string>>;
  /** The answer is a text, not JSON. */
  readonly text?: boolean;
  /** The method that walks the pages. */
  readonly iterate?: string;
}

/** Options of every call. */
export interface CallOptions {
  /** Ends the call when it is aborted; the call then throws the signal's reason. */
  signal?: AbortSignal;
  /** How many milliseconds the call may take, with all it takes to send it again. */
  timeout?: number;
}

/** Options of calls that change something. */
export interface ChangeOptions extends CallOptions {
  /** Calls with the same key count once. Made for you where it is needed; give your own to repeat a call later. */
  idempotencyKey?: string;
}

/** Options of some calls. */
export interface Extras {
  /** Gets the parts of an answer as they come. */
  onToken?: (text: string) => void;
  /** Is told how many texts are done, and of how many. */
  progress?: (done: number, total: number) => void;
  /** The `etag` of what you have seen: nothing is changed if somebody else changed it since. */
  ifMatch?: string;
}
