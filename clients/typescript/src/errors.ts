/** What the server says of an error. */
export interface Problem {
  message: string;
  code?: string | undefined;
  field?: string | null | undefined;
  value?: unknown;
  remedy?: string | null | undefined;
  requestId?: string | undefined;
  status?: number | undefined;
}

/** The base of all errors; `code` is stable and `remedy` says what to do. */
export class HeedfulError extends Error {
  override name = "HeedfulError";

  /** Stable: programs may compare it. */
  readonly code: string;
  /** The parameter that is wrong. */
  readonly field: string | undefined;
  readonly value: unknown;
  readonly remedy: string | undefined;
  /** Under which the server's log has it. */
  readonly requestId: string | undefined;
  /** Of the answer; undefined if none came. */
  readonly status: number | undefined;

  constructor(problem: Problem, code = "error") {
    super(problem.remedy ? `${problem.message}. ${problem.remedy}` : problem.message);
    this.code = problem.code ?? code;
    this.field = problem.field ?? undefined;
    this.value = problem.value;
    this.remedy = problem.remedy ?? undefined;
    this.requestId = problem.requestId;
    this.status = problem.status;
  }
}

/** What was named does not exist here. */
export class NotFound extends HeedfulError {
  override name = "NotFound";

  constructor(problem: Problem) {
    super(problem, "not_found");
  }
}

/** A value can't be accepted; nothing was changed. */
export class Invalid extends HeedfulError {
  override name = "Invalid";

  constructor(problem: Problem) {
    super(problem, "invalid");
  }
}

/** The request contradicts what is stored. */
export class Conflict extends HeedfulError {
  override name = "Conflict";

  constructor(problem: Problem) {
    super(problem, "conflict");
  }
}

/** The caller may not do this. */
export class Forbidden extends HeedfulError {
  override name = "Forbidden";

  constructor(problem: Problem) {
    super(problem, "forbidden");
  }
}

/** Something this call needs can't be used right now. */
export class Unavailable extends HeedfulError {
  override name = "Unavailable";

  constructor(problem: Problem) {
    super(problem, "unavailable");
  }
}

const KINDS: Readonly<Record<number, typeof NotFound>> = {
  400: Invalid,
  401: Forbidden,
  403: Forbidden,
  404: NotFound,
  405: Invalid,
  409: Conflict,
  412: Conflict,
  413: Invalid,
  415: Invalid,
  422: Invalid,
  429: Unavailable,
};

/** The error behind an answer that is not a success. */
export function errorOf(status: number, document: Record<string, unknown>, requestId?: string): HeedfulError {
  const kind = KINDS[status] ?? (status >= 500 ? Unavailable : HeedfulError);
  return new kind({
    message: text(document.detail) ?? `the server answered ${status}`,
    code: text(document.code),
    field: text(document.field),
    value: document.value,
    remedy: text(document.remedy),
    requestId: text(document.request_id) ?? requestId,
    status,
  });
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}
