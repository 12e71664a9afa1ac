/** Heedful: the feedback loop for AI agents. */

export { etag } from "./answer.js";
export { connect, type ConnectOptions } from "./connect.js";
export { Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable } from "./errors.js";
export { HindsightClient, type HindsightClientOptions, type Memory, type SignalItem } from "./hindsight.js";
export type { CallOptions, ChangeOptions } from "./operation.js";
export { asPrompt } from "./prompt.js";
export type * from "./schema.js";
