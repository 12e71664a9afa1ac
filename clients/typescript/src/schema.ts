// Written by `npm run generate` from the server's description of its API. Edits here are overwritten.

import type { CallOptions, ChangeOptions, Extras, Operation } from "./operation.js";

/** A page of a list; `next_cursor` asks for the next one, and is null at the end. */
export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** One message in the outbox. */
export interface Alert {
  /** The same in every attempt. */
  alert_id: string;
  /** The name of the channel it is for. */
  channel: string;
  /** What is sent. */
  payload: Record<string, unknown>;
  /** When the feedback was given. */
  created_at: string;
  /** How often it was tried. */
  attempts: number;
  /** When it is tried next; None when it was delivered or discarded. */
  next_at: string | null;
  /** When it arrived. */
  delivered_at: string | null;
  /** Why the last attempt failed. */
  error: string | null;
}

/** Something that was refused, or that an admin did. */
export interface AuditEntry {
  /** When. */
  at: string;
  /** Whether somebody was refused, or an admin did something. */
  kind: "refusal" | "action";
  /** The call: "keys.create", or a method and a route. */
  operation: string;
  /** None if it concerns the whole server, or if the caller is not known. */
  project: string | null;
  /**
   * The id of a key or token; "admin" for the key of the environment. None if it is not known, or if a program had
   * the store open itself.
   */
  caller: string | null;
  /** Where the call came from. */
  address: string | null;
  /** Why it was refused: the code of the error. */
  code: string | null;
  /** The id of what an action made or changed. */
  target: string | null;
  /** How often, within a few seconds. */
  times: number;
}

/** The result of a bulk deletion. */
export interface BulkDeletion {
  /** How many were retracted. */
  deleted_count: number;
  /** Those that were not there. */
  failed_ids: string[];
}

/** The proven questions of one connector, and the questions that the cache is asked and refuses. */
export interface CacheCoverage {
  /** The connector. */
  connector_id: string;
  /** The most frequent first. */
  proven: ProvenKind[];
  /** Of all kinds. */
  proven_questions: number;
  /** How many kinds there are in all. */
  proven_kinds: number;
  /** Questions that would be refused now, by gate, most frequent first. */
  refused: RefusedKind[];
  /** The questions whose proof would answer most, first. */
  missing: MissingExample[];
}

/** One decision of the cache. */
export interface CacheDecision {
  /** When it was given. */
  at: string;
  /** The question. */
  question: string;
  /** Whether it may be used as it is, may be used with other values, or may not be used. */
  decision: "serve" | "rebind" | "refuse" | "nothing";
  /** Which gate decided. */
  gate: string;
  /** Why, in words. */
  reason: string;
  /** Of the nearest stored question. */
  similarity: number | null;
  /** The execution or golden example that was looked at. */
  candidate_id: string | null;
  /** The execution that was made of it. */
  execution_id: string | null;
}

/** The answer of the cache to a question. */
export interface CacheLookup {
  /** Whether the first match may be used. */
  cache_hit: boolean;
  /** Those to serve first, then those to rebind, then those refused; each by similarity. */
  matches: CacheMatch[];
  /** How many stored questions were looked at. */
  candidates_checked: number;
  /** The probable meaning of the question, if nothing may be used and there is exactly one likely reading. */
  suggestion: CacheSuggestion | null;
}

/** A stored execution that is like what is asked, and whether it may be used. */
export interface CacheMatch {
  /** The execution's fields. Where the match is used, `sql_query` and `result` are those of the new run. */
  execution: Record<string, unknown>;
  /** How alike the two questions are; it decides nothing. */
  similarity_score: number;
  /** Whether anybody has said anything of it. */
  has_feedback: boolean;
  /** Whether it was right, by all opinions; None if there is none. */
  feedback_is_positive: boolean | null;
  /** What was said of it in words. */
  feedback_comment: string | null;
  /** Whether it may be used as it is, may be used with other values, or may not be used. */
  decision: "serve" | "rebind" | "refuse";
  /** Which gate decided. */
  gate: string;
  /** Why, as a sentence. */
  reason: string;
  /** The question it was run for. */
  question: string;
  /** Where the two questions differ, one sentence each. */
  differences: string[];
  /** How long ago it ran. */
  age_days: number;
  /** Whether its schema, or its data where that can be detected, has changed since. */
  stale: boolean;
}

/** The decisions of the cache, and why. */
export interface CacheReport {
  /** How many opinions stand. */
  total: number;
  /** How many were served or rebound. */
  reused: number;
  /** The most frequent first. */
  counts: DecisionCount[];
  /** The newest decisions first. */
  newest: CacheDecision[];
}

/** The probable meaning of a question, which somebody has to confirm. */
export interface CacheSuggestion {
  /** The proven question with the values of the one that was asked. */
  question: string;
  /** The SQL for it. `chat.confirm_suggestion` with the question that was asked and `execution_id` confirms it. */
  sql_query: string;
  /** The question that was proven. */
  proven_question: string;
  /** The proven execution, or golden example, that it comes from. */
  execution_id: string;
}

/** SQL for a question, and what it gave. */
export interface ChatAnswer {
  /** The message of a chat that it belongs to. */
  chat_message_id: string;
  /** The chat session. */
  chat_session_id: string;
  /** The question. */
  query: string;
  /** The SQL. */
  sql_query: string;
  /** `served` and `rebound` were proven before; `written` is new; `suggested` has to be confirmed. */
  origin: "query" | "served" | "rebound" | "written" | "suggested";
  /** Where the SQL comes from, in words. */
  explanation: string;
  /** The execution or golden example whose SQL was reused. */
  derived_from: string | null;
  /** The language model that wrote it. */
  model: string | null;
  /** The probable meaning of the question, if nothing proven answers it and there is exactly one likely reading. */
  suggestion: CacheSuggestion | null;
  /** The result in words. */
  answer: string;
  /** None if nothing ran, because there is only a suggestion. */
  execution_result: Execution | null;
}

/** The parameters of `chat.chat_to_answer`. */
export interface ChatChatToAnswerRequest {
  /** The question, in any words. */
  query: string;
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string | null;
  /** How reliable a rated execution must be to serve as an example, from 0 to 1; higher is stricter. */
  feedback_cutoff?: number;
  /** Notes about the data for the language model, in addition to those it finds itself. */
  remarks?: string[];
  /** Who asks. What others proved about themselves is not reused for them. */
  author?: string | null;
}

/** The parameters of `chat.chat_to_sql`. */
export interface ChatChatToSqlRequest {
  /** The question, in any words. */
  query: string;
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string | null;
  /** How reliable a rated execution must be to serve as an example, from 0 to 1; higher is stricter. */
  feedback_cutoff?: number;
  /** Notes about the data for the language model, in addition to those it finds itself. */
  remarks?: string[];
  /** Who asks. What others proved about themselves is not reused for them. */
  author?: string | null;
}

/** The parameters of `chat.confirm_suggestion`. */
export interface ChatConfirmSuggestionRequest {
  /** The question. */
  user_query: string;
  /** The suggested execution. */
  execution_id: string;
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string | null;
  /** Who confirms it. */
  author?: string | null;
  /** Whom it is for, such as a user or tenant ID (case-sensitive); everybody if left out. */
  audience?: string | null;
}

/** The parameters of `chat.execution_cache_lookup`. */
export interface ChatExecutionCacheLookupRequest {
  /** The question. */
  user_query: string;
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string | null;
  /** How old an execution may be. */
  max_age_days?: number;
  /** The similarity, from 0 to 1, above which a stored question is considered. */
  similarity_threshold?: number;
  /** How many stored questions to consider. */
  limit?: number;
  /** How many to return. */
  top_n?: number;
  /** Only executions that were rated as right, and by nobody as wrong. */
  only_positive_feedback?: boolean;
  /** `sql` runs the proven SQL now; `result` returns the stored result, however old. */
  reuse?: "sql" | "result";
  /** Who asks. What is proven for other audiences is not considered. */
  audience?: string | null;
  /** Who asks. What others proved about themselves is not reused for them. */
  author?: string | null;
}

/** A question that was asked in a chat session. */
export interface ChatQuestion {
  /** The message that answers it. */
  chat_message_id: string;
  /** The question. */
  question: string;
  /** The SQL. */
  sql_query: string | null;
  /** How it came about. */
  origin: "query" | "served" | "rebound" | "written" | "suggested" | null;
  /** When it was made. */
  created_at: string;
}

/** A conversation about data. */
export interface ChatSession {
  /** Its id. */
  id: string;
  /** What it is called. */
  name: string | null;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
  /** Whom it is held with; what is proven for another audience is not used in it. None is everybody. */
  audience: string | null;
}

/** The parameters of `chat_sessions.create`. */
export interface ChatSessionsCreateRequest {
  /** The name. */
  name?: string | null;
  /** Whom it is for, such as a user or tenant ID (case-sensitive); everybody if left out. */
  audience?: string | null;
}

/** SQL for a question. */
export interface ChatSql {
  /** The message of a chat that it belongs to. */
  chat_message_id: string;
  /** The chat session. */
  chat_session_id: string;
  /** The question. */
  query: string;
  /** The SQL. */
  sql_query: string;
  /** `served` and `rebound` were proven before; `written` is new; `suggested` has to be confirmed. */
  origin: "query" | "served" | "rebound" | "written" | "suggested";
  /** Where the SQL comes from, in words. */
  explanation: string;
  /** The execution or golden example whose SQL was reused. */
  derived_from: string | null;
  /** The language model that wrote it. */
  model: string | null;
  /** The probable meaning of the question, if nothing proven answers it and there is exactly one likely reading. */
  suggestion: CacheSuggestion | null;
}

/** One line of `doctor`. */
export interface Check {
  /** What was looked at. */
  name: string;
  /** Whether it is right now. */
  ok: boolean;
  /** What was found. */
  detail: string;
  /** Whether it was wrong and was rebuilt. */
  repaired: boolean;
}

/** The chance that one variant is better than another. */
export interface Comparison {
  /** The value of the likelier winner. */
  better: unknown;
  /** The value of the other one. */
  than: unknown;
  /** That its true satisfaction is greater. */
  probability: number;
}

/** A database that executions run against; secrets are not shown. */
export interface Connector {
  /** The connector. */
  connector_id: string;
  /** What it is called. */
  name: string;
  /** Its URL, without secrets. */
  url: string;
  /** The kind of database. */
  dialect: string;
  /** False for one that was imported, until `connectors.confirm`. */
  enabled: boolean;
  /** Whether the operator has accepted a login that may do more than read. */
  privileged: boolean;
  /** Columns whose values are not read to recognise them in questions. */
  sensitive_columns: string[];
  /** How many tables its schema has; None before it was read. */
  tables: number | null;
  /** The same as long as the schema is the same. */
  fingerprint: string | null;
  /** When the schema was read. */
  schema_at: string | null;
  /** When it was made. */
  created_at: string;
}

/** The parameters of `connectors.confirm`. */
export interface ConnectorsConfirmRequest {
  /** Accept a login that may do more than read. Over HTTP, this needs a server-wide key. */
  privileged?: boolean;
}

/** The parameters of `connectors.create`. */
export interface ConnectorsCreateRequest {
  /** The name. */
  name: string;
  /** A SQLAlchemy URL. Write secrets as `${VAR}`. */
  url: string;
  /** PostgreSQL: the role to run as. */
  role?: string | null;
  /** Accept a login that may do more than read. Over HTTP, this needs a server-wide key. */
  privileged?: boolean;
  /** Columns, as `table.column`, whose values must not be read to recognize them in questions. */
  sensitive_columns?: string[];
}

/** The parameters of `connectors.refresh`. */
export interface ConnectorsRefreshRequest {
  /** Columns, as `table.column`, whose values must not be read to recognize them in questions. */
  sensitive_columns?: string[] | null;
}

/** The usefulness of one fact in one context. */
export interface ContextScore {
  /** The earliest query of the context. */
  query: string;
  /** All queries of the context. */
  queries: string[];
  /** By the signals of this context alone, with the documented arithmetic. */
  score: number;
  /** How many signals count. */
  signal_count: number;
  /** How many signals of each type. */
  signal_breakdown: Partial<Record<"used" | "ignored" | "helpful" | "not_helpful", number>>;
  /** When the newest signal was given. */
  last_signal_at: string;
}

/** An active supersession. */
export interface Correction {
  /** Retract it to undo the supersession. */
  event_id: string;
  /** The fact. */
  fact_id: string;
  /** The fact that is recalled in its place. */
  superseded_by: string;
  /** When it was given. */
  at: string;
  /** Whose opinion it is. */
  author: string | null;
}

/** How much of what was shown was rated. */
export interface Coverage {
  /** Entries of sessions, on the day they were given. */
  answers: Covered;
  /** SQL that ran, on the day it did. */
  executions: Covered;
  /** Of those whose receipts are kept; rated are those that were judged first in this time. */
  recalls: Covered;
}

/** How much of one kind of thing was rated. */
export interface Covered {
  /** The kind that was shown. */
  kind: "answers" | "executions" | "recalls";
  /** How many there were. */
  shown: number;
  /** How many of them somebody has an opinion of, today. */
  rated: number;
  /** rated / shown; None if nothing was shown. */
  share: number | null;
  /** The lower end of its 95% interval (Wilson). */
  low: number | null;
  /** The upper end. */
  high: number | null;
}

/** The parameters of `create_dataset`. */
export interface CreateDatasetRequest {
  /** Metadata of the dataset, merged into what is stored. */
  metadata?: Record<string, unknown> | null;
}

/** A named set of facts. */
export interface Dataset {
  /** What it is called. */
  name: string;
  /** What is known of it. */
  metadata: Record<string, unknown>;
  /** How many it has that can be recalled. */
  facts: number;
  /** When it was made. */
  created_at: string;
}

/** How often the cache decided so, for this reason. */
export interface DecisionCount {
  /** `nothing`: no stored question was like it. */
  decision: "serve" | "rebind" | "refuse" | "nothing";
  /** Which gate decided. */
  gate: string;
  /** How many there were. */
  count: number;
  /** Of all decisions. */
  share: number;
}

/** The parameters of `detect`. */
export interface DetectRequest {
  /** The answer that was made from the facts. */
  answer: string;
}

/** The use that an answer made of one fact that was shown. */
export interface Detection {
  /** The fact. */
  fact_id: string;
  /** None where it is unclear. */
  signal_type: "used" | "ignored" | null;
  /** How sure `signal_type` is, in [0, 1]; 0 without one. */
  confidence: number;
  /** The reason. */
  reasons: string[];
}

/** A summary of the feedback in a period, compared with the period before. */
export interface Digest {
  /** Whose it is. */
  project: string;
  /** When the time begins. */
  since: string;
  /** When it is over. */
  until: string;
  /** The opinions of this time. */
  now: Variant;
  /** Those of the time before it, which was as long. */
  before: Variant;
  /** The themes of negative comments, largest first. */
  themes: Theme[];
  /** The changes that are larger than chance explains. */
  notes: Note[];
  /** Items of the review queue that are open. */
  open_items: number;
  /** All of it in a line. */
  headline: string;
  /** All of it in words. */
  text: string;
}

/** The parameters of `doctor`. */
export interface DoctorRequest {
  /** Rebuild derived data that is wrong. */
  repair?: boolean;
}

/** The texts of one source. Remembering it replaces the earlier texts of that source. */
export interface Document {
  /** Where the text comes from. */
  source: string;
  /** The texts; long ones are split. */
  texts: string[];
  /** One for each text, if given. */
  metadata?: (Record<string, unknown>)[] | null;
}

/** One question and answer of a session, with the active feedback. */
export interface Entry {
  /** The entry's id, for `add_feedback`. */
  qa_id: string;
  /** The question. */
  question: string;
  /** What was answered. */
  answer: string;
  /** The texts that the answer was made from. */
  context: string;
  /** When it was answered. */
  time: string;
  /** The latest text that stands. */
  feedback_text: string | null;
  /** The latest score that stands. */
  feedback_score: number | null;
  /** The receipt of the evidence. */
  recall_id: string | null;
  /** Where the evidence is from. */
  dataset: string | null;
  /** The facts the answer used; None where that is not known yet. */
  used: UsedFact[] | null;
  /** The language model that wrote the answer; None if none did. */
  model: string | null;
  /** What the language model counted. */
  usage: Usage | null;
  /** The caller's own id, such as that of a run or a trace. */
  external_id: string | null;
}

/** A record that proves what was erased of a person, without their name. */
export interface Erasure {
  /** The pseudonym that replaces their name; None if nothing had the name. */
  author: string | null;
  /** The event of the ledger that says the same; None if nothing was erased. */
  event_id: string | null;
  /** Events of the ledger that have another author now. */
  events: number;
  /** Opinions without their words. */
  feedback: number;
  /** Texts that came with signals. */
  notes: number;
  /** Notes and assignments of the review queue. */
  review: number;
  /** Sessions that named them, without what was said there. */
  sessions: number;
  /** Executions without the question that was asked there. */
  executions: number;
  /** Questions asked there that nothing else refers to. */
  questions: number;
  /** Alerts that quoted them. */
  alerts: number;
  /** Results that were kept for retries. */
  results: number;
  /** Keys that had their name. */
  keys: number;
}

/** A mean and its 95% interval. */
export interface Estimate {
  /** The mean. */
  value: number;
  /** The lower end. */
  low: number;
  /** The upper end. */
  high: number;
}

/** One ledger event behind a score. */
export interface EventRef {
  /** The event, for `retract`. */
  event_id: string;
  /** What is said of the fact. */
  signal_type: "used" | "ignored" | "helpful" | "not_helpful";
  /** The question. */
  query: string;
  /** How sure the author is. */
  confidence: number;
  /** When it was given. */
  at: string;
  /** Whose opinion it is. */
  author: string | null;
}

/** One SQL statement that ran, with its result. */
export interface Execution {
  /** The execution. */
  execution_id: string;
  /** The connector. */
  connector_id: string;
  /** The question. */
  question: string | null;
  /** The SQL. */
  sql_query: string;
  /** The values of the `:name` places. */
  parameters: Record<string, unknown>;
  /** Its rows. */
  result: QueryResult;
  /** How long it took, in milliseconds. */
  execution_time_ms: number;
  /** How it came about. */
  origin: "query" | "served" | "rebound" | "written" | "suggested";
  /** The execution or golden example whose SQL was reused. */
  derived_from: string | null;
  /** The message of a chat that it belongs to. */
  chat_message_id: string | null;
  /** When it was made. */
  created_at: string;
  /** The caller's own id, such as that of a run or a trace. */
  external_id: string | null;
  /** Whom it may be reused for; None is everybody. */
  audience: string | null;
}

/** Feedback about an execution or a message of a chat. */
export interface ExecutionFeedback {
  /** Its id. */
  id: string;
  /** The execution. */
  execution_id: string | null;
  /** The message of a chat that it belongs to. */
  chat_message_id: string | null;
  /** The reason. */
  feedback: string | null;
  /** Whether it was right. */
  is_positive: boolean;
  /** Whose opinion it is. */
  author: string | null;
  /** Who the author is: a visitor neither proves SQL nor blocks it. */
  author_kind: "named" | "program" | "visitor";
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/** The parameters of `executions.execute_from_chat`. */
export interface ExecutionsExecuteFromChatRequest {
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string | null;
}

/** The parameters of `executions.execute_query`. */
export interface ExecutionsExecuteQueryRequest {
  /** One statement that only reads. */
  sql_query: string;
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string | null;
  /** The question it answers, so that the cache can find it. */
  question?: string | null;
  /** Values for the `:name` placeholders. */
  parameters?: Record<string, unknown> | null;
  /** The message of a chat, from `chat_to_sql` or `chat_to_answer`. */
  chat_message_id?: string | null;
  /** Your own ID for it (a run, trace or message ID), which feedback may name; unique in the project. */
  external_id?: string | null;
  /** Whom it is for, such as a user or tenant ID (case-sensitive); everybody if left out. */
  audience?: string | null;
}

/** Why a hit has its score: the parts, the evidence and the arithmetic. */
export interface Explanation {
  /** Similarity by meaning, in [0, 1]. */
  vector: number | null;
  /** Similarity by words, in [0, 1]. */
  words: number | null;
  /** The share of neighbouring facts of its source, already included in `relevance`. */
  neighbours: number | null;
  /** The entity over which it was reached from another fact or from the query, in the mode `graph`. */
  links: string[];
  /** The earlier query whose context was matched most closely. */
  matched_context: string | null;
  /** How alike that query and the one asked are. */
  context_similarity: number | null;
  /** The signals behind its usefulness. */
  event_count: number;
  /** The newest 100 of them, oldest first. */
  events: EventRef[];
  /** The way to the score, in lines for people. */
  arithmetic: string[];
}

/** One column of an exported table. */
export interface ExportColumn {
  /** What was looked at. */
  name: string;
  /** Its type, as the database calls it. */
  type: "text" | "integer" | "number" | "boolean" | "time" | "json";
  /** The note in words. */
  meaning: string;
}

/** One table that can be exported. */
export interface ExportTable {
  /** What was looked at. */
  name: "feedback" | "signals" | "entries" | "sessions" | "messages" | "facts" | "recalls" | "executions" | "golden_examples" | "decisions" | "review_items" | "events";
  /** The meaning of a row. */
  meaning: string;
  /** The columns, in order. */
  columns: ExportColumn[];
}

/** One fact as it is stored. */
export interface Fact {
  /** The fact. */
  fact_id: string;
  /** The fact's text. */
  text: string;
  /** The dataset. */
  dataset: string;
  /** Where the text comes from. */
  source: string | null;
  /** The fact's metadata. */
  metadata: Record<string, unknown>;
  /** When it was made. */
  created_at: string;
  /** From then on it is not recalled, listed or counted; None if it has no end. */
  expires_at: string | null;
}

/** An existing fact that says otherwise than one that was stored now; nothing was changed about either. */
export interface FactConflict {
  /** The event that noted it; `retract` it if both are true. */
  event_id: string;
  /** The fact that was stored now. */
  fact_id: string;
  /** The existing fact. `supersede(conflicts_with, by=fact_id)` puts the new one in its place. */
  conflicts_with: string;
  /** The text of the existing fact. */
  text: string;
  /** The kind of difference. */
  kind: "number" | "date" | "name";
  /** The value in the new fact. */
  value: string;
  /** The value in the existing fact. */
  other_value: string;
}

/** Facts with the same problem. */
export interface FactFinding {
  /** The problem. */
  kind: "duplicate" | "near_duplicate" | "never_recalled" | "always_ignored" | "expired";
  /** How many there are; of pairs, at most 5,000 are compared. */
  count: number;
  /** The first of them. */
  facts: FoundFact[];
  /** The remedy. */
  remedy: string;
}

/** How the overall usefulness of one fact came to be, and what it superseded. */
export interface FactHistory {
  /** The fact. */
  fact_id: string;
  /** When it was made. */
  created_at: string;
  /** From then on it is not recalled; None if it has no end. */
  expires_at: string | null;
  /** The active signals behind its score. */
  event_count: number;
  /** After each of the newest 1,000 of them, oldest first; before the first of all, it is 0.5. */
  points: ScorePoint[];
  /** Now: it fades to 0.5 while nobody says anything. */
  overall_usefulness: number;
  /** The fact that is recalled in its place. */
  superseded_by: Correction | null;
  /** How it came to be, if it is the correction of another. */
  supersedes: Correction | null;
}

/** A fact as `remember` reports it. */
export interface FactRef {
  /** The fact. */
  fact_id: string;
  /** The fact's text. */
  text: string;
  /** Whether it was stored now. */
  new: boolean;
}

/** The problems that an audit found in a dataset. Nothing was changed. */
export interface FactReport {
  /** The dataset. */
  dataset: string;
  /** How many can be recalled. */
  facts: number;
  /** How many recalls were looked at, the newest 50,000 at most. */
  recalls: number;
  /** The problems by kind. */
  findings: FactFinding[];
}

/** All that signals say about one fact; usefulness and scores are decayed to now. */
export interface FactStats {
  /** The fact. */
  fact_id: string;
  /** The fact's text. */
  text: string;
  /** The dataset. */
  dataset: string;
  /** By the signals for all queries, with the documented arithmetic. `usefulness` of a hit is for the query asked. */
  overall_usefulness: number;
  /** How many signals count. */
  signal_count: number;
  /** How many signals of each type. */
  signal_breakdown: Partial<Record<"used" | "ignored" | "helpful" | "not_helpful", number>>;
  /** When the newest signal was given. */
  last_signal_at: string | null;
  /** Queries that have signals for it. */
  query_count: number;
  /**
   * By its 100 queries with the most signals (fewer where these are long), the strongest context first. A query that
   * is new may be a context by itself until it is embedded.
   */
  contexts: ContextScore[];
}

/** One opinion about a session or an entry. */
export interface Feedback {
  /** Also the id of its event: `retract` undoes it. */
  feedback_id: string;
  /** The session. */
  session_id: string;
  /** What it is about. */
  target_type: "session" | "entry";
  /** The session, or the entry. */
  target_id: string;
  /** Of an entry: up from 4, down to 2, else None. */
  rating: "up" | "down" | null;
  /** 1 to 5, for entries. */
  score: number | null;
  /** What was said in words. */
  comment: string | null;
  /** Whose opinion it is. */
  author: string | null;
  /** Who the author is: a visitor changes no score and teaches nothing. */
  author_kind: "named" | "program" | "visitor";
  /** When it was given. */
  created_at: string;
  /** Metadata added by hooks. */
  extra: Record<string, unknown>;
}

/** The parameters of `feedback.bulk_delete`. */
export interface FeedbackBulkDeleteRequest {
  /** The feedbacks, up to 10,000. */
  feedback_ids: string[];
}

/** The parameters of `feedback.create_negative`. */
export interface FeedbackCreateNegativeRequest {
  /** Why it was wrong. */
  feedback?: string | null;
  /** The execution. */
  execution_id?: string | null;
  /** The message of a chat, from `chat_to_sql` or `chat_to_answer`. */
  chat_message_id?: string | null;
  /** Whose opinion it is; your program's if left out. */
  author?: string | null;
}

/** The parameters of `feedback.create_positive`. */
export interface FeedbackCreatePositiveRequest {
  /** Why it was right. */
  feedback_text?: string | null;
  /** The execution. */
  execution_id?: string | null;
  /** The message of a chat, from `chat_to_sql` or `chat_to_answer`. */
  chat_message_id?: string | null;
  /** Whose opinion it is; your program's if left out. */
  author?: string | null;
}

/** The parameters of `feedback.create`. */
export interface FeedbackCreateRequest {
  /** Whether it was right. */
  is_positive: boolean;
  /** The reason. */
  feedback?: string | null;
  /** The execution. */
  execution_id?: string | null;
  /** The message of a chat, from `chat_to_sql` or `chat_to_answer`. */
  chat_message_id?: string | null;
  /** Whose opinion it is; your program's if left out. */
  author?: string | null;
}

/** Feedbacks, the newest first, and how many there are in all. */
export interface FeedbackList {
  /** What is on this page. */
  items: ExecutionFeedback[];
  /** How many there are in all. */
  total: number;
  /** How many were left out at the beginning. */
  skip: number;
  /** How many were asked for. */
  limit: number;
}

/** All active feedback, counted. */
export interface FeedbackMetrics {
  /** How many opinions stand. */
  total: number;
  /** Ratings up, and scores of 4 and 5. */
  positive: number;
  /** Ratings down, and scores of 1 and 2. */
  negative: number;
  /** Neither up nor down, and scores of 3. */
  neutral: number;
  /** Characters of a comment, on average. */
  avg_comment_length: number;
}

/** A short-lived token with which a browser may rate some targets. */
export interface FeedbackToken {
  /** The token that the browser sends as its key. */
  token: string;
  /** Under whose name it speaks. */
  author: string;
  /** `named` with an author, else `visitor`. */
  author_kind: "named" | "program" | "visitor";
  /** The targets it may rate. */
  targets: Target[];
  /** When it is no longer good. */
  expires_at: string;
}

/** The parameters of `feedback.update`. */
export interface FeedbackUpdateRequest {
  /** The new comment; None removes it. */
  feedback?: string | null;
  /** Whether it was right. */
  is_positive?: boolean;
}

/** A file that could not be remembered. */
export interface FileError {
  /** Where the text comes from. */
  source: string;
  /** A stable word for programs. */
  code: string;
  /** What is wrong, for people. */
  message: string;
}

/** The parameters of `forget`. */
export interface ForgetRequest {
  /** One fact or several. */
  fact_ids?: string | string[] | null;
  /** All facts of this source. */
  source?: string | null;
  /** The dataset of `source`; without `source`, the dataset to remove entirely. */
  dataset?: string | null;
  /** Instead of facts: the exact name of the person to erase. */
  author?: string | null;
}

/** The facts that `forget` removed. */
export interface ForgetResult {
  /** How many are gone. */
  facts: number;
  /** The datasets they were in, separated by commas. */
  dataset: string;
  /** The facts that they had superseded and that are recalled again; forget these too if they are wrong. */
  restored: string[];
  /** The record of the erasure, if an author was named. */
  erased: Erasure | null;
}

/** A fact that something should be done about. */
export interface FoundFact {
  /** The fact. */
  fact_id: string;
  /** The fact's text. */
  text: string;
  /** The fact that says the same, where there is one. */
  other: string | null;
  /** Why it is named. */
  detail: string;
}

/** A question with the SQL that answers it, by somebody's word. */
export interface GoldenExample {
  /** Its id. */
  id: string;
  /** The connector. */
  connector_id: string;
  /** The question that the SQL answers. */
  question: string;
  /** The SQL. */
  sql_query: string;
  /** How it came about. */
  origin: "given" | "imported" | "promoted";
  /** The execution it was promoted from. */
  execution_id: string | null;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
  /** Whom it is for; None is everybody. */
  audience: string | null;
}

/** The parameters of `golden_examples.create`. */
export interface GoldenExamplesCreateRequest {
  /** The question that the SQL answers. */
  question: string;
  /** One statement that only reads. */
  sql_query: string;
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string | null;
  /** Whom it is for, such as a user or tenant ID (case-sensitive); everybody if left out. */
  audience?: string | null;
}

/** The parameters of `golden_examples.import_examples`. */
export interface GoldenExamplesImportExamplesRequest {
  /** Mappings with `question` and `sql_query`. */
  examples: NewExample[];
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string | null;
}

/** The parameters of `golden_examples.promote`. */
export interface GoldenExamplesPromoteRequest {
  /** The execution. */
  execution_id: string;
  /** The question, reworded. */
  question?: string | null;
  /** Whom it is for; the audience of the execution if left out. */
  audience?: string | null;
}

/** The parameters of `golden_examples.update`. */
export interface GoldenExamplesUpdateRequest {
  /** The new question. */
  question?: string;
  /** The new SQL: one statement that only reads. */
  sql_query?: string;
  /** Whom it is for from now on; None for everybody. */
  audience?: string | null;
}

/** A fact that helped, and its places. */
export interface HelpfulFact {
  /** The fact. */
  fact_id: string;
  /** Its first 200 characters. */
  text: string;
  /** Its rank as the store is; None where it is not among the facts that are asked for. */
  old_rank: number | null;
  /** Its rank with the change. */
  new_rank: number | null;
}

/** One recalled fact. */
export interface Hit {
  /** The fact. */
  fact_id: string;
  /** The fact's text. */
  text: string;
  /** What the rank is by. */
  score: number;
  /** How well the fact answers by meaning and words, in [0, 1]. */
  relevance: number;
  /** What signals say of the fact for this query, in [0, 1]; 0.5 is neutral. */
  usefulness: number;
  /** Whether that is from this context, from all queries, or from nobody. */
  usefulness_source: "context" | "related" | "global" | "neutral";
  /** The fact's metadata. */
  metadata: Record<string, unknown>;
  /** Where the text comes from. */
  source: string | null;
  /** Where the text is in its source, in characters. */
  position: [number, number] | null;
  /** The place, from 1. */
  rank: number;
  /** How many other facts have the same text and pass the filters. A recall shows each text once. */
  copies: number;
  /** Where the text is said, if there are copies: the sources of at most ten of these facts. */
  sources: string[];
  /** The fact learnt from feedback that corrects this one, or what this one was learnt from; it ranks higher. */
  corrected_by: string | null;
  /** The reasons, with `explain=True`. */
  explanation: Explanation | null;
}

/** The parameters of `improve`. */
export interface ImproveRequest {
  /** Only this dataset; all if left out. */
  dataset?: string | null;
  /** Only these sessions, up to 10,000; all if left out. */
  session_ids?: string[] | null;
}

/** The changes made by `improve`; all zero if there was nothing new. */
export interface Improvement {
  /** None if several were improved. */
  dataset: string | null;
  /** Answers whose ratings were looked at. */
  entries: number;
  /** Signals about facts that ratings made. */
  signals_added: number;
  /** Those that no rating bears out any longer. */
  signals_retracted: number;
  /** The facts whose scores were recomputed. */
  updated_facts: string[];
  /** Signals about links of the graph. */
  link_signals_added: number;
  /** Those that no rating bears out any longer. */
  link_signals_retracted: number;
  /** The facts that were made. */
  learnt: LearntFact[];
  /** Learnt facts whose source is gone. */
  forgotten: string[];
  /** Links to entities that the language model found. */
  entities_added: number;
  /** Ratings by visitors, which create no signals. */
  visitor_ratings: number;
  /** Rated answers that use no fact that could be recognised, so that their ratings move none. */
  without_facts: number;
  /** The newest hundred lessons that were not learnt, and why. A person can teach them from the review queue. */
  not_learnt: NotLearnt[];
}

/** Why one item of a batch was refused. */
export interface ItemError {
  /** Its place in the call. */
  index: number;
  /** A stable word for programs. */
  code: string;
  /** What is wrong, for people. */
  message: string;
  /** The fact. */
  fact_id: string | null;
}

/** Work that is done in the background: at least once, by one worker at a time. */
export interface Job {
  /** The ID for `get`, `cancel` and `retry`. */
  job_id: string;
  /**
   * The kind of work: improve, reembed, maintain, index for the search inside a database, digest of feedback, or
   * deliver for an alert in the outbox.
   */
  kind: "improve" | "reembed" | "maintain" | "index" | "digest" | "deliver";
  /** Whose it is; None for work on the whole store. */
  project: string | null;
  /** The arguments of the job. */
  arguments: Record<string, unknown>;
  /** waiting, running, done, failed or cancelled. */
  status: "waiting" | "running" | "done" | "failed" | "cancelled";
  /** How often it was begun. */
  attempts: number;
  /** How much of it is done, of `total`; None before that is known. */
  done: number | null;
  /** How much there is to do. */
  total: number | null;
  /** Why the last attempt failed. */
  error: string | null;
  /** When it was made. */
  created_at: string;
  /** When it was last begun. */
  started_at: string | null;
  /** When it was done, cancelled or given up. */
  finished_at: string | null;
}

/** The parameters of `jobs.improve`. */
export interface JobsImproveRequest {
  /** Only this dataset; all if left out. */
  dataset?: string | null;
  /** Only these sessions, up to 10,000; all if left out. */
  session_ids?: string[] | null;
}

/** A key to a server; its secret is shown once, when it is made. */
export interface Key {
  /** The ID for `revoke`; not a secret. */
  key_id: string;
  /** What was looked at. */
  name: string;
  /** The project it opens; None for all. */
  project: string | null;
  /** The scopes of the key. */
  scopes: ("read" | "write" | "feedback" | "admin")[];
  /** Calls a second; None for what the server allows. */
  rate_limit: number | null;
  /** When it was made. */
  created_at: string;
  /** To about a minute; None if it was never used. */
  last_used_at: string | null;
  /** Since when it is useless; None if it is good. */
  revoked_at: string | null;
}

/** The parameters of `keys.create`. */
export interface KeysCreateRequest {
  /** The name. */
  name: string;
  /** What it may do: some of `read`, `write`, `feedback` and `admin`. */
  scopes?: ("read" | "write" | "feedback" | "admin")[];
  /** Calls per second; the server's limit if left out. */
  rate_limit?: number | null;
}

/** The parameters of `keys.create_token`. */
export interface KeysCreateTokenRequest {
  /** What may be rated: `Target` objects, or mappings with the same fields. */
  targets: Target[];
  /** The author of feedback given with this key; generated if left out. */
  author?: string | null;
  /** An ID that distinguishes visitors; only its hash is stored. */
  subject?: string | null;
  /** Seconds until it expires, up to a day. */
  expires_in?: number;
}

/** The parameters of `keys.rotate_signing`. */
export interface KeysRotateSigningRequest {
  /** Seconds that tokens and logins signed with the old secret stay valid, up to a week. */
  grace?: number;
}

/** A fact that `improve` made from a session. */
export interface LearntFact {
  /** The new fact. */
  fact_id: string;
  /** The fact's text. */
  text: string;
  /** The session it was learnt in. */
  session_id: string;
  /** The entry it was learnt from. */
  qa_id: string;
  /** A well-rated answer, or feedback that corrects a fact. */
  learnt_from: "answer" | "feedback";
  /** The fact that the feedback corrects. */
  corrects: string | null;
}

/** One message of a session. */
export interface Message {
  /** The message. */
  message_id: string;
  /** Who said it. */
  role: string;
  /** The text of the message. */
  content: string;
  /** When it was said. */
  at: string;
}

/** A question whose proof would answer others, too. */
export interface MissingExample {
  /** The most frequent of them. */
  question: string;
  /** How often it, or one that differs from it in values alone, was asked. */
  asked: number;
  /** How many different ones that are. */
  questions: number;
  /** The probable meaning, if there is one likely reading. */
  suggestion: CacheSuggestion | null;
}

/** A fact that helps in one context and hurts in another. */
export interface MixedFact {
  /** The fact. */
  fact_id: string;
  /** The fact's text. */
  text: string;
  /** The usefulness over all queries, by the documented arithmetic, decayed to now. */
  overall_usefulness: number;
  /** The context in which it is most useful. */
  helps: ContextScore;
  /** The context in which it is least useful. */
  hurts: ContextScore;
}

/** A question, and the SQL that answers it. */
export interface NewExample {
  /** The question. */
  question: string;
  /** The SQL. */
  sql_query: string;
  /** Whom it is for; None is everybody. */
  audience?: string | null;
}

/** A key that was just made, with its secret. */
export interface NewKey {
  /** The ID for `revoke`; not a secret. */
  key_id: string;
  /** What was looked at. */
  name: string;
  /** The project it opens; None for all. */
  project: string | null;
  /** The scopes of the key. */
  scopes: ("read" | "write" | "feedback" | "admin")[];
  /** Calls a second; None for what the server allows. */
  rate_limit: number | null;
  /** When it was made. */
  created_at: string;
  /** To about a minute; None if it was never used. */
  last_used_at: string | null;
  /** Since when it is useless; None if it is good. */
  revoked_at: string | null;
  /** Keep it: it is not stored and can't be shown again. */
  api_key: string;
}

/** A message that is to be added. */
export interface NewMessage {
  /** Who said it. */
  role: string;
  /** The text of the message. */
  content: string;
  /** When it was given. */
  at?: string | null;
}

/** Something that was rated well and is gone on purpose, or is no fault of the change. */
export interface NotCompared {
  /** The kind of thing that was rated: `question`, `answer` or `execution`. */
  kind: "question" | "answer" | "execution";
  /** The question. */
  question: string;
  /** Where its facts are; None for an execution. */
  dataset: string | null;
  /** The fact, if it is about one. */
  fact_id: string | null;
  /** A word for programs. */
  reason: "superseded" | "forgotten" | "expired" | "not_stored_then" | "rows_changed" | "not_written";
  /** The reason in words. */
  detail: string;
}

/** Feedback that would have taught a fact, and did not. */
export interface NotLearnt {
  /** The opinion. */
  feedback_id: string;
  /** The session. */
  session_id: string;
  /** The answer that it is about. */
  qa_id: string;
  /** The text that would have been learnt: the answer, or the correction in the comment. */
  learnt_from: "answer" | "feedback";
  /**
   * The author is a visitor; too few authors say so; it corrects no fact of the answer; or it would keep personal
   * data that no fact has.
   */
  reason: "visitor" | "too_few_authors" | "corrects_nothing" | "personal_data";
  /** The same in words. */
  detail: string;
}

/** Something that changed, and is not luck. */
export interface Note {
  /** In a sentence. */
  text: string;
  /** The subject of the note: "all", "dataset", "model", "metadata.variant", "theme", "policy"… */
  about: string;
  /** Which of them; None for all. */
  value: unknown;
  /** The first day on which it is so, in UTC. */
  since: string;
  /** How many times as much as before; None where there was nothing before. */
  ratio: number | null;
  /** Whether it went up, of what is better down. */
  worse: boolean;
  /** The figures it comes from. */
  arithmetic: string[];
  /** The change of policy that it is about: retract it to undo the change. */
  event_id: string | null;
}

/** The result of `set_policy`. */
export interface PolicyChange {
  /** Retract it to undo the change; None if nothing changed. */
  event_id: string | null;
  /** None for the whole project. */
  dataset: string | null;
  /** The rule that recalls use now; None for the default. */
  policy: "documented" | "adaptive" | null;
  /** The rule before; None for the default. */
  previous: "documented" | "adaptive" | null;
}

/** The policy that recalls follow unless a call names another, and why. */
export interface PolicyInUse {
  /** None for the project. */
  dataset: string | null;
  /** The rule it was ranked by. */
  policy: "documented" | "adaptive";
  /** None if no policy was chosen, so that the default holds. */
  chosen_for: "dataset" | "project" | null;
  /** `set_policy`; `guard` if ratings got worse after a change and the setting `revert_worse_policy` undid it. */
  chosen_by: string | null;
  /** The time of the choice. */
  chosen_at: string | null;
  /** Retract it to undo the choice. */
  event_id: string | null;
}

/** Proven questions whose SQL is the same but for its values. */
export interface ProvenKind {
  /** The SQL, with … for its values. */
  sql_template: string;
  /** How many were proven. */
  questions: number;
  /** One of them. */
  example: string;
}

/** Rows, with the names and types of their columns; JSON and back keeps every value. */
export interface QueryResult {
  /** The columns, in order. */
  columns: ({
    /** What it is called. */
    name: string;
    /** Its type, as the database calls it. */
    type: string;
    /** `json`, or what all values are that JSON has no type for: `decimal`, `date`, … */
    kind: string;
  })[];
  /** The rows, each a list of values. */
  rows: unknown[][];
  /** Whether there were more rows than the limits allow. */
  truncated: boolean;
  /** Which limit that was: rows, bytes or seconds. */
  truncated_by: string | null;
}

/** A fact in a list of the most or least useful. */
export interface RankedFact {
  /** The fact. */
  fact_id: string;
  /** The fact's text. */
  text: string;
  /** The usefulness over all queries, by the documented arithmetic, decayed to now. */
  overall_usefulness: number;
  /** How many signals count. */
  signal_count: number;
}

/** The status of a rating. In Python, it is true if the rating is stored. */
export interface RatingResult {
  /** `waiting` for an answer with this id, which may still come; `refused` by a feedback hook. */
  status: "stored" | "waiting" | "refused";
  /** The same in words, unless it is stored. */
  detail: string | null;
}

/** The answer to `recall`: hits, best first, under a receipt. */
export interface Recall {
  /** The receipt's id, for `signal_recall`. */
  recall_id: string;
  /** The question. */
  query: string;
  /** The dataset. */
  dataset: string;
  /** How it was searched. */
  mode: "hybrid" | "semantic" | "lexical" | "graph";
  /** The rule it was ranked by. */
  policy: "documented" | "adaptive";
  /** The facts found, best first. The object itself can be iterated and indexed, too. */
  hits: Hit[];
  /** The session. */
  session_id: string | null;
  /** The entry of the session under which question and answer are kept; None without a session. */
  qa_id: string | null;
  /** The answer made from the hits, with citations; None without a session. */
  answer: string | null;
  /** Whether its receipt was kept, so that feedback can name it; with a session it always is. */
  receipt: boolean;
  /** The `cursor` for the next page of the same recall; None if there are no more facts, or 1,000 were shown. */
  next_cursor: string | null;
}

/** The parameters of `recall`. */
export interface RecallRequest {
  /** The question, in any words. */
  query: string;
  /** The dataset. */
  dataset?: string;
  /** How many facts to return at most. */
  top_k?: number;
  /** `hybrid` (meaning and words), `semantic` (meaning), `lexical` (words), or `graph` (hybrid and links). */
  mode?: "hybrid" | "semantic" | "lexical" | "graph";
  /** Conditions on metadata, all of which must hold. */
  where?: Record<string, unknown> | null;
  /** Blend usefulness into the score (true or a weight), or rank by relevance (false); by policy if left out. */
  boost_by_usefulness?: boolean | number | null;
  /** The share of usefulness in the score, from 0 to 1. */
  usefulness_weight?: number;
  /** Another name for `usefulness_weight`: above 0, it turns the boost on; 0 turns it off. */
  feedback_influence?: number | null;
  /** Leave out facts with a lower usefulness. Not with `boost_by_usefulness` false. */
  min_usefulness?: number;
  /** `documented` or `adaptive`; None leaves it to the dataset, then to the project. */
  policy?: "documented" | "adaptive" | null;
  /** The probability of giving the last place to a fact that nobody has rated for such a query. */
  exploration?: number;
  /** The seed for `exploration`. */
  seed?: number | null;
  /** Add an `explanation` to every hit. */
  explain?: boolean;
  /** Answer, and store the exchange in this session. */
  session_id?: string | null;
  /** Also answer the question. */
  answer?: boolean;
  /** Your own ID for it (a run, trace or message ID), which feedback may name; unique in the project. */
  external_id?: string | null;
  /** The `next_cursor` of the previous page, with the same `query`, `dataset`, `mode` and `where`. */
  cursor?: string | null;
}

/** The facts that one recall showed. */
export interface Receipt {
  /** The receipt's id, for `signal_recall`. */
  recall_id: string;
  /** The dataset. */
  dataset: string;
  /** The question. */
  query: string;
  /** How it was searched. */
  mode: "hybrid" | "semantic" | "lexical" | "graph";
  /** The rule it was ranked by. */
  policy: "documented" | "adaptive";
  /** 0 where the recall was not boosted. */
  usefulness_weight: number;
  /** When it was given. */
  at: string;
  /** The facts, in the order they were shown. */
  shown: Shown[];
}

/** One signal that was taken, under the event that can be retracted. */
export interface RecordedSignal {
  /** The event, for `retract`. */
  event_id: string;
  /** The fact. */
  fact_id: string;
  /** What is said of the fact. */
  signal_type: "used" | "ignored" | "helpful" | "not_helpful";
}

/** Questions that one gate refuses. */
export interface RefusedKind {
  /** Which gate refuses them. */
  gate: string;
  /** How often they were asked. */
  asked: number;
  /** How many different ones there are. */
  questions: number;
  /** Some of them, the most frequent first. */
  examples: string[];
}

/** The rated questions of one kind, dataset or theme. */
export interface RegressGroup {
  /** The kind, the dataset or the theme. */
  name: string;
  /** How many questions it has. */
  compared: number;
  /** How many of them get better. */
  better: number;
  /** How many stay as they are. */
  same: number;
  /** How many get worse. */
  worse: number;
  /** The mean change of their scores. */
  change: number;
}

/** The effect of a change on the questions that people rated well. */
export interface RegressReport {
  /** The change that is compared with the store as it is. */
  candidate: string;
  /** How many different questions were rated well. */
  rated: number;
  /** How many of them were compared: a sample if one was asked for. */
  compared: number;
  /** How many needs these are: phrasings of one question count once in the intervals. */
  needs: number;
  /** Whether all that should be compared was; false if the deadline came first. */
  complete: boolean;
  /** How many get better. */
  better: number;
  /** How many stay as they are. */
  same: number;
  /** How many get worse. */
  worse: number;
  /** The share of the questions that don't get worse. Its interval resamples whole needs. */
  kept: Estimate;
  /** The mean score now, in [0, 1]. */
  score_before: number;
  /** The mean score with the change. */
  score_after: number;
  /** The difference of the two. */
  change: Estimate;
  /** The share of resamples in which the change is below 0. */
  certainty: number;
  /** Whether the change makes things worse for sure: with a certainty of 0.998, and seven needs that change. */
  is_worse: boolean;
  /** The questions that get worse, worst first; at most 100. */
  worst: Regression[];
  /** The rated things that are gone on purpose; at most 100 are listed. */
  not_compared: NotCompared[];
  /** How many those are. */
  retired: number;
  /** The same for questions, answers and executions. */
  kinds: RegressGroup[];
  /** The same for each dataset. */
  datasets: RegressGroup[];
  /** The largest themes of the questions, by what they ask for. */
  themes: RegressGroup[];
  /** The seed of the sample and of the intervals. */
  seed: number;
}

/** The parameters of `regress`. */
export interface RegressRequest {
  /** Only this dataset; all if left out. */
  dataset?: string | null;
  /** Only what was rated from this time on. */
  since?: string | null;
  /** The policy to try: `documented` or `adaptive`. */
  policy?: "documented" | "adaptive" | null;
  /** The fixed share of usefulness in the score to try, from 0 to 1. */
  usefulness_weight?: number | null;
  /** The mode to try: `hybrid`, `semantic`, `lexical` or `graph`. */
  mode?: "hybrid" | "semantic" | "lexical" | "graph" | null;
  /** The model to try: `bundled`, `fast`, a folder, `URL#model`, or an embedder. Over HTTP, one of the first two. */
  embedding?: "bundled" | "fast" | null;
  /** Compare with the store as its facts and its ledger were at this time. */
  as_of?: string | null;
  /** Also write answers again, by the language model if there is one, and compare their words. */
  answers?: boolean;
  /** Also run proven SQL again, and compare its rows. */
  executions?: boolean;
  /** Let the ratings of a question count when it is asked. */
  own_votes?: boolean;
  /** How many rated questions to ask at most, drawn at random. */
  sample?: number;
  /** How many facts to look through; one that is not among them is lost. */
  top_k?: number;
  /** Seconds after which it stops; what was compared by then is reported. */
  deadline?: number | null;
  /** The seed of the sample and of the intervals. */
  seed?: number;
}

/** A question that would get worse. */
export interface Regression {
  /** The kind of thing that was rated: `question`, `answer` or `execution`. */
  kind: "question" | "answer" | "execution";
  /** The question. */
  question: string;
  /** Where its facts are; None for an execution. */
  dataset: string | null;
  /** The theme of the question, if it has one. */
  theme: string | null;
  /** The entry or the execution that was rated. */
  target_id: string | null;
  /**
   * The change of its score, below 0. The score is the mean reciprocal rank of the facts that helped, or whether the
   * answer or the result is still the same (1 or 0).
   */
  change: number;
  /** The facts that helped. */
  facts: HelpfulFact[];
  /** The first fact, the answer or the result as it is now. */
  before: string | null;
  /** The same with the change. */
  after: string | null;
  /** Why, in words. */
  reason: string;
}

/** The parameters of `remember`. */
export interface RememberRequest {
  /** One text or document, or a list; in Python, a `Path` is a file or a folder. */
  texts: string | Document | (string | Document)[];
  /** The dataset. */
  dataset?: string;
  /** One mapping for all texts, or one per text. */
  metadata?: Record<string, unknown> | (Record<string, unknown>)[] | null;
  /** Where the texts come from. A file's source is its path. */
  source?: string | null;
  /** From this time on, they are no longer recalled: a future time with a zone, such as 2030-01-31T12:00:00Z. */
  expires_at?: string | null;
  /** Run `improve` afterwards, in the background. */
  self_improvement?: boolean;
}

/** The facts that `remember` stored, document by document in the order given. */
export interface RememberResult {
  /** The dataset. */
  dataset: string;
  /** The facts, in order. */
  facts: FactRef[];
  /** How many facts are new. */
  added: number;
  /** How many facts were there already. */
  known: number;
  /** How many facts a changed file no longer says. */
  removed: number;
  /** What was refused, one by one. */
  errors: FileError[];
  /**
   * Existing facts about the same thing with another number, date or name, as far as that is certain; they are in
   * the review queue, too. A call that stores more than 64 new facts looks for none.
   */
  conflicts: FactConflict[];
}

/** The weight that a policy should be given, by what was replayed. */
export interface ReplayAdvice {
  /** The rule it was ranked by. */
  policy: "documented" | "adaptive";
  /** 0 where nothing surely beats relevance alone; None where there are too few ratings to tell. */
  usefulness_weight: number | null;
  /** Why, in words. */
  reason: string;
}

/** The quality of one way to order the facts that were shown, by their ratings. */
export interface ReplayArm {
  /** None for the logged order and for relevance alone. */
  policy: "documented" | "adaptive" | null;
  /** None for the logged order, whose recalls may have had different ones. */
  usefulness_weight: number | null;
  /** The mean reciprocal rank of the first helpful fact. */
  mrr: Estimate;
  /** nDCG at 10; helpful facts count 1, all others 0. */
  ndcg: Estimate;
  /** The difference to the logged order, with the interval of the paired difference. */
  mrr_change: Estimate;
  /** The same of nDCG. */
  ndcg_change: Estimate;
  /** How many queries have a better mean reciprocal rank than they had as logged. */
  queries_better: number;
  /** How many have a worse one. */
  queries_worse: number;
  /** The ten that lose most, worst first. */
  worse: WorseQuery[];
}

/** The order that would have been best, of relevance alone and each policy with its recommended weight. */
export interface ReplayRecommendation {
  /** None for relevance alone. */
  policy: "documented" | "adaptive" | null;
  /** The weight that was best for it; 0 for relevance alone. */
  usefulness_weight: number;
  /** The difference to the order that was shown. */
  mrr_change: Estimate;
  /** The share of resamples in which it is better than that; 0.5 is a coin. */
  certainty: number;
  /** Whether that is 0.95 or more: enough to change something. */
  is_certain: boolean;
  /** Why, in words. */
  reason: string;
}

/** The quality of other policies and weights on the recalls that people rated. */
export interface ReplayReport {
  /** The dataset. */
  dataset: string;
  /** Recalls with active explicit ratings. */
  rated: number;
  /** Those of them with a fact rated helpful: the others say nothing about an order. */
  replayed: number;
  /** How many different queries those had. */
  queries: number;
  /** How many recalls with equal weights would say as much; below `replayed` where exploration was at work. */
  effective_sample_size: number;
  /** The seed of the intervals. */
  seed: number;
  /** The order that was shown; None where nothing was replayed. */
  logged: ReplayArm | null;
  /** Relevance alone. */
  none: ReplayArm | null;
  /** Each policy with each weight. */
  arms: ReplayArm[];
  /** One for each policy. */
  advice: ReplayAdvice[];
  /** None where there are too few ratings to tell. */
  recommendation: ReplayRecommendation | null;
}

/** The parameters of `replay`. */
export interface ReplayRequest {
  /** The dataset. */
  dataset?: string;
  /** The policies to try; all if left out. */
  policies?: ("documented" | "adaptive")[] | null;
  /** The values of `usefulness_weight` to try, up to 100; 0.1 to 0.9 if left out. */
  weights?: number[] | null;
  /** Only recalls from this time on. */
  since?: string | null;
  /** The seed for the confidence intervals. */
  seed?: number;
}

/** The parameters of `retract`. */
export interface RetractRequest {
  /** Who retracts it. */
  author?: string | null;
}

/** The result of `retract`. */
export interface Retraction {
  /** The new event that records the retraction. */
  event_id: string;
  /** The event that no longer counts. */
  retracted: string;
  /** The facts whose scores were recomputed. */
  updated_facts: string[];
}

/** The parameters of `review.assign`. */
export interface ReviewAssignRequest {
  /** The person it is assigned to. */
  assignee: string | null;
  /** Who performs the action. */
  author?: string | null;
}

/** An item with all that is needed to fix it. */
export interface ReviewCase {
  /** The item itself; its `etag` goes into `if_match`. */
  item: ReviewItem;
  /** The newest answer that was disliked. */
  answer: string | null;
  /** The SQL, where it is about an execution. */
  sql_query: string | null;
  /** The execution. */
  execution_id: string | null;
  /** The recall behind the answer. */
  recall_id: string | null;
  /** That of the recall: 0 if it was asked for without feedback; None if its receipt is gone. */
  usefulness_weight: number | null;
  /** The facts behind the answer, best first. */
  evidence: ReviewEvidence[];
  /** Those that are active, the newest first, at most 100 of each kind. */
  opinions: ReviewOpinion[];
  /**
   * The oldest first. An opinion that opened the item again is a `reopen` whose `details` name it as `opinion`; it is
   * listed until it is retracted.
   */
  history: ReviewEvent[];
  /** The fixes that apply to it. */
  fixes: ("supersede" | "retract" | "teach" | "block" | "promote" | "add_example")[];
}

/** The same question, asked again. */
export interface ReviewComparison {
  /** The question. */
  question: string;
  /** The answer that was disliked, or the SQL, where it is about an execution. */
  before: string | null;
  /** The answer, or the SQL that would run; None if there is none that may be used again. */
  after: string | null;
  /** Why the cache decides so, where it is about an execution. */
  reason: string | null;
  /** That of the recall behind the disliked answer: 0 if it was without feedback, while the new one is with it. */
  usefulness_weight: number | null;
  /** The facts behind the answer that was disliked. */
  evidence_before: ReviewEvidence[];
  /** The facts behind the answer now. */
  evidence_after: Hit[];
  /** Whether the answer or the order of the evidence differs. */
  changed: boolean;
}

/** The parameters of `review.dismiss`. */
export interface ReviewDismissRequest {
  /** A note for other reviewers. */
  note?: string | null;
  /** Who performs the action. */
  author?: string | null;
}

/** Something that was done about an item. */
export interface ReviewEvent {
  /** The action that `undo` reverts. */
  event_id: string;
  /** The action. */
  action: "assign" | "resolve" | "dismiss" | "reopen" | "supersede" | "retract" | "teach" | "block" | "promote" | "add_example";
  /** Who did it. */
  author: string | null;
  /** When. */
  at: string;
  /** Why. */
  note: string | null;
  /** The object of the action, and its result. */
  details: Record<string, unknown>;
  /** Whether it was retracted. */
  undone: boolean;
}

/** A fact behind the answer, as it was shown. */
export interface ReviewEvidence {
  /** The fact. */
  fact_id: string;
  /** None if it was forgotten since. */
  text: string | null;
  /** None if the receipt is gone, or if it was not shown. */
  rank: number | null;
  /** What the rank is by. */
  score: number | null;
  /** How well the fact answers by meaning and words, in [0, 1]. */
  relevance: number | null;
  /** What signals say of the fact for this query, in [0, 1]; 0.5 is neutral. */
  usefulness: number | null;
  /** Its part in the answer. */
  share: number | null;
  /** Whether another fact is recalled in its place. */
  superseded: boolean;
}

/** The parameters of `review.fix`. */
export interface ReviewFixRequest {
  /** `supersede`, `retract`, `block`, `promote` or `add_example`. */
  action: "supersede" | "retract" | "teach" | "block" | "promote" | "add_example";
  /** The fact. */
  fact_id?: string | null;
  /** The corrected text. */
  text?: string | null;
  /** Instead of `text`: a fact that already exists. */
  by?: string | null;
  /** The opinion, from the item's `opinions`. */
  event_id?: string | null;
  /** The execution. */
  execution_id?: string | null;
  /** A question other than that of the item or execution. */
  question?: string | null;
  /** One statement that only reads. */
  sql_query?: string | null;
  /** A connector other than that of the item. */
  connector_id?: string | null;
  /** A note for other reviewers. */
  note?: string | null;
  /** Who does it. */
  author?: string | null;
}

/** Opinions that say the same, as one piece of work. */
export interface ReviewItem {
  /** For all that is done to it. */
  item_id: string;
  /**
   * Contradictory, if somebody else says the contrary of the same thing; a conflict, if `remember` noticed facts that
   * say otherwise than this one.
   */
  kind: "negative" | "contradictory" | "conflict";
  /** The target of the opinions. */
  target_type: "session" | "entry" | "message" | "execution" | "fact";
  /** The question; None if it is not stored. */
  question: string | null;
  /** That was asked; None where it is about something else. */
  dataset: string | null;
  /** The status after the latest action of a reviewer. */
  status: "open" | "resolved" | "dismissed";
  /** Who is assigned to it. */
  assignee: string | null;
  /** Negative ones that are active. Without any, an item is no longer listed as open. */
  opinions: number;
  /** Positive ones about the same things, of the thousand that were spoken of last. */
  positive: number;
  /** The newest comment, shortened. */
  comment: string | null;
  /** When the first opinion was given. */
  opened_at: string;
  /** When the newest opinion was given. */
  last_at: string;
  /** When somebody last acted on it; when it was opened, if nobody did. */
  changed_at: string;
}

/** One opinion of an item. */
export interface ReviewOpinion {
  /** The event that `retract` undoes. */
  event_id: string;
  /** What it is about. */
  target_type: "session" | "entry" | "message" | "execution" | "fact";
  /** The session, entry, message, execution or fact. */
  target_id: string;
  /** None where it is about none. */
  session_id: string | null;
  /** Whether it says the contrary of the item. */
  positive: boolean;
  /** 1 (worst) to 5 (best), where one was given. */
  score: number | null;
  /** What was said in words. */
  comment: string | null;
  /** Whose opinion it is. */
  author: string | null;
  /** Who the author is: a visitor's correction becomes a fact only if a reviewer teaches it. */
  author_kind: "named" | "program" | "visitor";
  /** When it was given. */
  at: string;
}

/** The parameters of `review.reopen`. */
export interface ReviewReopenRequest {
  /** A note for other reviewers. */
  note?: string | null;
  /** Who performs the action. */
  author?: string | null;
}

/** The parameters of `review.resolve`. */
export interface ReviewResolveRequest {
  /** A note for other reviewers. */
  note?: string | null;
  /** Who performs the action. */
  author?: string | null;
}

/** The parameters of `review.undo`. */
export interface ReviewUndoRequest {
  /** Who undoes it. */
  author?: string | null;
}

/** Satisfaction by a value: of the sessions' metadata, or of the opinions themselves. */
export interface Satisfaction {
  /** The key. */
  by: string;
  /** The most sessions first, or the most opinions. */
  variants: Variant[];
  /** Each pair once, the likelier winner as `better`. */
  comparisons: Comparison[];
  /** None with fewer than two variants that have ratings. */
  stopping: Stopping | null;
}

/** The overall usefulness of a fact after one signal. */
export interface ScorePoint {
  /** When it was given. */
  at: string;
  /** The usefulness over all queries, by the documented arithmetic, decayed to now. */
  overall_usefulness: number;
  /** Retract it to undo the signal. */
  event_id: string;
  /** What is said of the fact. */
  signal_type: "used" | "ignored" | "helpful" | "not_helpful";
  /** The question. */
  query: string;
  /** How sure the author is. */
  confidence: number;
  /** Whose opinion it is. */
  author: string | null;
}

/** One conversation. */
export interface Session {
  /** The session. */
  session_id: string;
  /** What is known of it. */
  metadata: Record<string, unknown>;
  /** When it was made. */
  created_at: string;
  /** When anything in it was last written. */
  updated_at: string;
}

/** The data deleted with a session. */
export interface SessionDeletion {
  /** The session. */
  session_id: string;
  /** How many messages. */
  messages: number;
  /** How many questions and answers. */
  entries: number;
  /** How many opinions. */
  feedbacks: number;
  /** Facts that had been learnt in it. */
  forgotten_facts: number;
}

/** The parameters of `sessions.add_entry`. */
export interface SessionsAddEntryRequest {
  /** The question. */
  question: string;
  /** Your agent's answer; empty if it gave none in words. */
  answer: string;
  /** The texts the answer is based on; those of the recall if left out. */
  context?: string | null;
  /** The recall that showed the facts, from `recall(…).recall_id`. */
  recall_id?: string | null;
  /** The facts that the answer is based on, or a weight for each; `improve` detects them if left out. */
  used?: string[] | Record<string, number> | null;
  /** Your own ID for it (a run, trace or message ID), which feedback may name; unique in the project. */
  external_id?: string | null;
}

/** The parameters of `sessions.add_feedback`. */
export interface SessionsAddFeedbackRequest {
  /** A comment on the answer. */
  feedback_text?: string | null;
  /** 1 (worst) to 5 (best). */
  feedback_score?: number | null;
  /** Whose opinion it is; your program's if left out. */
  author?: string | null;
}

/** The parameters of `sessions.add_message`. */
export interface SessionsAddMessageRequest {
  /** Who said it, in a word: `user`, `assistant`, … */
  role: string;
  /** The text of the message. */
  content: string;
  /** The time of the message; now if left out. */
  at?: string | null;
}

/** The parameters of `sessions.add_messages`. */
export interface SessionsAddMessagesRequest {
  /** Mappings with `role`, `content` and, if known, `at`; or messages of another session. */
  messages: NewMessage[];
}

/** The parameters of `sessions.add_session_feedback`. */
export interface SessionsAddSessionFeedbackRequest {
  /** A mapping with `rating`, `comment` and any other keys to store. */
  feedback: Record<string, unknown>;
  /** Whose opinion it is; your program's if left out. */
  author?: string | null;
}

/** The parameters of `sessions.create`. */
export interface SessionsCreateRequest {
  /** The session's name; generated if left out. */
  session_id?: string | null;
  /** Metadata of the session, merged into what is stored. */
  metadata?: Record<string, unknown> | null;
}

/** The parameters of `sessions.rate`. */
export interface SessionsRateRequest {
  /** True, "up", "VERY_NEGATIVE" or another word, or a number; left out, only the comment counts. */
  rating?: boolean | number | string | null;
  /** The comment. */
  comment?: string | null;
  /** The worst and the best number, such as 1 and 5, for a rating that is a number. */
  scale?: number[] | null;
  /** Whose opinion it is; your program's if left out. */
  author?: string | null;
}

/** The parameters of `sessions.update_message`. */
export interface SessionsUpdateMessageRequest {
  /** The text of the message. */
  content: string;
}

/** The parameters of `sessions.update_metadata`. */
export interface SessionsUpdateMetadataRequest {
  /** The new values by key; a dot reaches inside a mapping. */
  metadata: Record<string, unknown>;
}

/** The parameters of `set_policy`. */
export interface SetPolicyRequest {
  /** `documented` or `adaptive`; None resets it. */
  policy: "documented" | "adaptive" | null;
  /** Only for this dataset; if left out, for the whole project. */
  dataset?: string | null;
}

/** One line of a receipt. */
export interface Shown {
  /** The fact. */
  fact_id: string;
  /** The place, from 1. */
  rank: number;
  /** What the rank is by. */
  score: number;
  /** How well the fact answers by meaning and words, in [0, 1]. */
  relevance: number;
  /** What signals say of the fact for this query, in [0, 1]; 0.5 is neutral. */
  usefulness: number;
  /** Whether that is from this context, from all queries, or from nobody. */
  usefulness_source: "context" | "related" | "global" | "neutral";
  /** The chance it had to be shown there: 1, but where exploration was at work. */
  propensity: number;
  /** The links that carried it in the mode `graph`, as "fact_id/entity". */
  links: string[];
}

/** One opinion about one fact for one query. */
export interface Signal {
  /** The fact. */
  fact_id: string;
  /** What is said of the fact. */
  signal_type: "used" | "ignored" | "helpful" | "not_helpful";
  /** The question. */
  query: string;
  /** How sure the author is. */
  confidence?: number;
  /** A note that is kept with the signal. It does not change the score. */
  context?: string | null;
  /** When it was given; now, if left out. Late and out-of-order signals fold in this order. */
  at?: string | null;
  /** Whose opinion it is. */
  author?: string | null;
  /** A signal with a key that was seen before counts once. */
  idempotency_key?: string | null;
  /** Your own id for it: sent again, it counts once, and `retract` takes it in place of the event's id. */
  external_id?: string | null;
}

/** The parameters of `signal_recall`. */
export interface SignalRecallRequest {
  /** Facts that the answer is based on. */
  used?: (string | number)[];
  /** Facts that a person rated as helpful. */
  helpful?: (string | number)[];
  /** Facts that a person rated as not helpful. */
  not_helpful?: (string | number)[];
  /** The agent's answer, from which Heedful detects which of the other facts were used. */
  answer?: string | null;
  /** How sure you are, from 0 to 1; scales every signal of the call. */
  confidence?: number;
  /** Whose opinion it is; your program's if left out. */
  author?: string | null;
}

/** The parameters of `signal`. */
export interface SignalRequest {
  /** `Signal` objects, or mappings with the same fields. */
  signals: Signal[];
  /** Only facts of this dataset are taken; others are listed in `errors`. */
  dataset?: string | null;
}

/** The result of `signal` or `signal_recall`. */
export interface SignalResult {
  /** How many signals were taken now; a retry takes none. */
  processed: number;
  /** The facts that have new scores. */
  updated_facts: string[];
  /** What was refused, one by one. */
  errors: ItemError[];
  /** The ledger's events, for `retract`. A signal that was given before has its first event here. */
  event_ids: string[];
  /** The same events with what they say. */
  signals: RecordedSignal[];
}

/** The result of `rotate_signing`. */
export interface SigningRotation {
  /** Since when the new secret is in use. */
  rotated_at: string;
  /** Until then, what was signed before is still good. */
  former_good_until: string;
}

/** Whether a comparison has been going on for long enough. */
export interface Stopping {
  /** Whether there are enough ratings. */
  decided: boolean;
  /** The variant to take, decided or not; None without ratings. */
  best: unknown;
  /** How much satisfaction is lost on average by taking it now, should another one be better. */
  expected_loss: number | null;
  /** About how many more ratings it takes, if the present rates are the true ones; None if unknown. */
  needed: number | null;
  /** The same in words. */
  reason: string;
}

/** The parameters of `supersede`. */
export interface SupersedeRequest {
  /** The corrected text. */
  text?: string | null;
  /** Instead of `text`: a fact that already exists. */
  by?: string | null;
  /** Who corrects it. */
  author?: string | null;
}

/** The result of `supersede`. */
export interface Supersession {
  /** Retract it to undo the supersession. */
  event_id: string;
  /** The fact. */
  fact_id: string;
  /** The fact that is recalled in its place. */
  superseded_by: string;
}

/**
 * Something that feedback can be about: a session, one of its answers, an execution, a message or a recall; or what
 * is suggested for a question, which a browser may confirm.
 */
export interface Target {
  /** The session. */
  session_id?: string | null;
  /** Of an answer in the session. */
  qa_id?: string | null;
  /** The execution. */
  execution_id?: string | null;
  /** For which the execution is suggested. */
  question?: string | null;
  /** The message of a chat that it belongs to. */
  chat_message_id?: string | null;
  /** The receipt's id, for `signal_recall`. */
  recall_id?: string | null;
  /** Of an answer, for `rate`. */
  external_id?: string | null;
}

/** Negative comments that are about the same. */
export interface Theme {
  /** Its most typical words. */
  name: string;
  /** How many there are. */
  comments: number;
  /** The most typical comments, shortened. */
  examples: string[];
  /** The opinions they came with, the most typical first. */
  feedback_ids: string[];
  /** When the first was written. */
  first_at: string;
  /** When the last was written. */
  last_at: string;
}

/** A theme of negative comments. */
export interface Themes {
  /** How many were read, the newest. */
  comments: number;
  /** The largest first. */
  themes: Theme[];
  /** Comments that match no theme. */
  other: number;
}

/** The contents of training data, and how they were created. */
export interface TrainingData {
  /** Which training they are for. */
  format: "kto" | "dpo" | "sft" | "triplets" | "text2sql" | "evals";
  /** How many lines there are. */
  lines: number;
  /** The lines of each side. */
  splits: Partial<Record<"train" | "test", number>>;
  /** How many needs they are about; all phrasings of one are on one side. */
  needs: number;
  /** The rated answers, facts and queries that are in no line, by reason. */
  left_out: Record<string, number>;
  /** The hash of the file with all lines, which is the same for the same ledger. */
  sha256: string;
  /** How they were made, in Markdown. */
  card: string;
}

/** Some lines of training data. */
export interface TrainingPage {
  /** What is on this page. */
  items: (Record<string, unknown>)[];
  /** Pass it as `cursor` to go on; None at the end. */
  next_cursor: string | null;
  /** All lines together. */
  data: TrainingData;
}

/** Satisfaction over time. */
export interface Trend {
  /** How long each step is. */
  over: "day" | "week";
  /** The key. */
  by: string | null;
  /** One for each value, the most opinions first; a single one without `by`. */
  lines: TrendLine[];
  /** All of it together. */
  total: Variant;
}

/** The points of one value, the oldest first; days without opinions are among them. */
export interface TrendLine {
  /** None for all opinions together, or where they have no such value. */
  value: unknown;
  /** One for each step. */
  points: TrendPoint[];
}

/** The opinions of one day or week. */
export interface TrendPoint {
  /** Its first day, in UTC. */
  start: string;
  /** Ratings up, and scores of 4 and 5. */
  up: number;
  /** Ratings down, and scores of 1 and 2. */
  down: number;
  /** Neither up nor down, and scores of 3. */
  neutral: number;
  /** up / (up + down); None without any. */
  satisfaction: number | null;
  /** The lower end of its 95% interval (Wilson). */
  low: number | null;
  /** The upper end. */
  high: number | null;
  /** The mean of the entries' scores; None without any. */
  mean_score: number | null;
}

/** The tokens that the language model counted; None if it did not report them. */
export interface Usage {
  /** Tokens that it read. */
  prompt_tokens: number | null;
  /** Tokens that it wrote. */
  completion_tokens: number | null;
}

/** A fact that an answer was made from. */
export interface UsedFact {
  /** The fact. */
  fact_id: string;
  /** Its part in the answer; the shares of an answer add up to 1. */
  share: number;
  /** The links of the graph by which it was found. */
  links: string[];
}

/** The signals of one dataset; usefulness is decayed to now. */
export interface UsefulnessStats {
  /** The dataset. */
  dataset: string;
  /** How many active facts there are: superseded and expired facts don't count. */
  total_facts: number;
  /** How many active facts have signals. */
  facts_with_signals: number;
  /** How many signals count. */
  total_signals: number;
  /** How many signals of each type. */
  signal_breakdown: Partial<Record<"used" | "ignored" | "helpful" | "not_helpful", number>>;
  /** The mean over facts that have signals; 0.5 if none has. */
  average_overall_usefulness: number;
  /** Facts with signals by overall usefulness, in ten bins from "0.0-0.1" to "0.9-1.0". */
  distribution: Record<string, number>;
  /** The ten facts with the highest scores. */
  most_useful: RankedFact[];
  /** The ten facts with the lowest scores. */
  least_useful: RankedFact[];
  /** Facts that help in one context and hurt in another. */
  mixed: MixedFact[];
  /** Different queries that have signals. */
  queries: number;
}

/** The opinions under one value. */
export interface Variant {
  /** The value. */
  value: unknown;
  /** Sessions with that value, rated or not; None where it is no value of sessions. */
  sessions: number | null;
  /** Ratings up, and scores of 4 and 5. */
  up: number;
  /** Ratings down, and scores of 1 and 2. */
  down: number;
  /** Neither up nor down, and scores of 3. */
  neutral: number;
  /** up / (up + down); None without any. */
  satisfaction: number | null;
  /** The lower end of its 95% interval (Wilson). */
  low: number | null;
  /** The upper end. */
  high: number | null;
  /** The mean of the entries' scores, 1 to 5; None without any. */
  mean_score: number | null;
  /** That this variant's true satisfaction is the greatest of all. */
  probability_best: number | null;
}

/** A query whose helpful fact another order would put lower. */
export interface WorseQuery {
  /** The question. */
  query: string;
  /** How many of its rated recalls were replayed. */
  receipts: number;
  /** The mean change of the reciprocal rank over those; below 0. */
  change: number;
  /** The recall of it that would lose most. */
  recall_id: string;
  /** Where that recall showed its first helpful fact. */
  old_rank: number;
  /** Where it would have been. */
  new_rank: number;
}

/** What is wrong, and what to do (RFC 9457). */
export interface Problem {
  /** The kind of problem, as a URI. */
  type: string;
  /** What the status means. */
  title: string;
  /** The status of the response. */
  status: number;
  /** What is wrong, for people. */
  detail: string;
  /** Stable: programs may compare it. */
  code: string;
  /** The parameter that is wrong. */
  field: string | null;
  /** What was given, if it can be shown. */
  value: unknown;
  /** What to do about it. */
  remedy: string | null;
  /** The same as in the header X-Request-ID, and in the log of the server. */
  request_id: string;
}

export interface FactsRequest {
  /** The dataset. */
  dataset?: string;
  /** Only facts of this source. */
  source?: string;
  /** Conditions on metadata, all of which must hold. */
  where?: Record<string, unknown>;
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
  /** Newest first. */
  newest_first?: boolean;
}

export interface PolicyRequest {
  /** That of this dataset; if left out, of the project. */
  dataset?: string;
}

export interface UsefulnessStatsRequest {
  /** The dataset. */
  dataset?: string;
}

export interface CheckFactsRequest {
  /** The dataset. */
  dataset?: string;
  /** How many facts of each kind to list, up to 1,000. */
  limit?: number;
}

export interface AuditRequest {
  /** Only calls that were refused (`refusal`), or only what an admin did (`action`). */
  kind?: "refusal" | "action";
  /** Only entries from this time on. */
  since?: string;
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface SessionsListRequest {
  /** Conditions on metadata, all of which must hold. */
  where?: Record<string, unknown>;
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface SessionsAlertsRequest {
  /** Only alerts that still have to be delivered. */
  pending?: boolean;
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface InsightSatisfactionRequest {
  /** A key of the sessions' metadata, dotted or not; or `dataset`, `model`, `source`, `author_kind`, `target_type`. */
  by: string;
  /** Only feedback from this time on. */
  since?: string;
  /** Only feedback before this time. */
  until?: string;
  /** Only answers from this dataset. */
  dataset?: string;
  /** Only opinions about a `session`, `entry`, `message`, `execution` or `fact`; all but those about facts, if left out. */
  target_type?: "session" | "entry" | "message" | "execution" | "fact";
}

export interface InsightTrendRequest {
  /** `day` or `week`; weeks begin on Mondays. */
  over?: "day" | "week";
  /** Draw a line for each value of this key, as in `satisfaction`. */
  by?: string;
  /** Only feedback from this time on. */
  since?: string;
  /** Only feedback before this time. */
  until?: string;
  /** Only answers from this dataset. */
  dataset?: string;
  /** Only opinions about a `session`, `entry`, `message`, `execution` or `fact`; all but those about facts, if left out. */
  target_type?: "session" | "entry" | "message" | "execution" | "fact";
}

export interface InsightCoverageRequest {
  /** Only facts shown from this day on. */
  since?: string;
  /** Only facts shown before the end of this day. */
  until?: string;
  /** Only facts of this dataset. */
  dataset?: string;
}

export interface InsightCacheRequest {
  /** Only decisions from this time on. */
  since?: string;
  /** Only decisions before this time. */
  until?: string;
  /** How many of the newest decisions to list. */
  limit?: number;
}

export interface InsightThemesRequest {
  /** Only feedback from this time on. */
  since?: string;
  /** Only feedback before this time. */
  until?: string;
  /** Only answers from this dataset. */
  dataset?: string;
}

export interface InsightNotesRequest {
  /** The start; four weeks ago if left out. */
  since?: string;
  /** Only feedback before this time. */
  until?: string;
  /** Only answers from this dataset. */
  dataset?: string;
  /** Also compare by this key of the sessions' metadata, with up to 50 values. */
  by?: string;
}

export interface InsightDigestRequest {
  /** The start; seven days before the end if left out. */
  since?: string;
  /** The end; now if left out, or the end of today without a start. */
  until?: string;
}

export interface InsightRowsRequest {
  /** One of the tables of `dictionary`. */
  table: "feedback" | "signals" | "entries" | "sessions" | "messages" | "facts" | "recalls" | "executions" | "golden_examples" | "decisions" | "review_items" | "events";
  /** Only rows from this time on. */
  since?: string;
  /** Only rows before this time. */
  until?: string;
  /** Only rows of this dataset. */
  dataset?: string;
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface InsightTrainingRequest {
  /** Which lines to make: for which kind of training. */
  format: "kto" | "dpo" | "sft" | "triplets" | "text2sql" | "evals";
  /** Only what is about facts of this dataset. */
  dataset?: string;
  /** Only from facts whose metadata meet all these conditions, as in `recall`. */
  where?: Record<string, unknown>;
  /** Only ratings from this time on. */
  since?: string;
  /** Only ratings before this time. */
  until?: string;
  /** Count the opinions of visitors, too. */
  visitors?: boolean;
  /** The share of needs that are for testing, from 0 to 1. */
  test_share?: number;
  /** Only lines of this side; of both if left out. */
  split?: "train" | "test";
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface ExecutionsListRequest {
  /** Only those of this connector, by ID or name. */
  connector_id?: string;
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface FeedbackListRequest {
  /** How many to skip. */
  skip?: number;
  /** How many at most, up to 10,000. */
  limit?: number;
  /** Only those whose text contains this, ignoring case. */
  search?: string;
}

export interface FeedbackListPositiveRequest {
  /** How many to skip. */
  skip?: number;
  /** How many at most, up to 10,000. */
  limit?: number;
}

export interface FeedbackListNegativeRequest {
  /** How many to skip. */
  skip?: number;
  /** How many at most, up to 10,000. */
  limit?: number;
}

export interface ChatExecutionCacheCoverageRequest {
  /** The connector, by ID or name; optional if the project has only one. */
  connector_id?: string;
  /** How old an execution may be. */
  max_age_days?: number;
  /** How many of each to list. */
  limit?: number;
}

export interface ChatSessionsListRequest {
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface GoldenExamplesListRequest {
  /** Only those of this connector, by ID or name. */
  connector_id?: string;
  /** How many to skip. */
  skip?: number;
  /** How many at most, up to 10,000. */
  limit?: number;
}

export interface ReviewListRequest {
  /** Only items that are open, resolved or dismissed; None for all. */
  status?: "open" | "resolved" | "dismissed";
  /** Only items assigned to this person. */
  assignee?: string;
  /** Only questions about this dataset. */
  dataset?: string;
  /** Only opinions about a `session`, `entry`, `message`, `execution` or `fact`. */
  target_type?: "session" | "entry" | "message" | "execution" | "fact";
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface JobsListRequest {
  /** Only jobs that are waiting, running, done, failed or cancelled. */
  status?: "waiting" | "running" | "done" | "failed" | "cancelled";
  /** Only jobs of this kind: improve, reembed, maintain, index, digest, or deliver for alerts of the outbox. */
  kind?: "improve" | "reembed" | "maintain" | "index" | "digest" | "deliver";
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
}

export interface SessionsMessagesRequest {
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
  /** Newest first. */
  newest_first?: boolean;
}

export interface SessionsDeleteMetadataRequest {
  /** The keys; a dot reaches inside a mapping. */
  keys: string[];
}

export interface SessionsEntriesRequest {
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
  /** Newest first. */
  newest_first?: boolean;
}

export interface SessionsFeedbacksRequest {
  /** The `next_cursor` of the previous page. */
  cursor?: string;
  /** How many at most in a page, up to 1,000. */
  limit?: number;
  /** Newest first. */
  newest_first?: boolean;
}

export interface FeedbackGetFeedbackForMessageRequest {
  /** How many to skip. */
  skip?: number;
  /** How many at most, up to 10,000. */
  limit?: number;
}

export interface SessionsDeleteFeedbackRequest {
  /** Only feedback of this author. */
  author?: string;
}

export interface ServerAuditRequest {
  /** The `next_cursor` of the previous page. */
  cursor?: string;
}

/** Conversations, answers, and what people say of them. */
export interface SessionsMethods {
  /**
   * Makes a session, with an id of its own if none is given. One that is there is returned as it is, with `metadata` merged into it.
   *
   * Needs the scope `write`.
   */
  create(fields?: SessionsCreateRequest, options?: ChangeOptions): Promise<Session>;
  /**
   * Sessions, the newest first; `where` compares metadata, as in `recall`.
   *
   * Needs the scope `read`.
   */
  list(fields?: SessionsListRequest, options?: CallOptions): Promise<Page<Session>>;
  /** All items of `list`, page by page as they are needed; `limit` is the size of a page. */
  iterate(fields?: SessionsListRequest, options?: CallOptions): AsyncGenerator<Session, void>;
  /**
   * All active feedback of the project, counted by the store.
   *
   * Needs the scope `read`.
   */
  feedbackMetrics(options?: CallOptions): Promise<FeedbackMetrics>;
  /**
   * Alerts, the newest first; with `pending`, those that are still to be delivered.
   *
   * Needs the scope `admin`.
   */
  alerts(fields?: SessionsAlertsRequest, options?: CallOptions): Promise<Page<Alert>>;
  /** All items of `alerts`, page by page as they are needed; `limit` is the size of a page. */
  iterateAlerts(fields?: SessionsAlertsRequest, options?: CallOptions): AsyncGenerator<Alert, void>;
  /**
   * Delivers what is due now, and returns how many were; a background thread does it otherwise.
   *
   * Needs the scope `admin`.
   */
  deliverAlerts(options?: ChangeOptions): Promise<number>;
  /**
   * One session.
   *
   * Needs the scope `read`.
   */
  get(session_id: string, options?: CallOptions): Promise<Session>;
  /**
   * Removes a session with its messages, entries and feedback, and all that was learnt from it.
   *
   * A long session is removed in several steps, feedback first. If the process dies meanwhile, the session still has
   * the rest: delete it again.
   *
   * Needs the scope `write`.
   */
  delete(session_id: string, options?: ChangeOptions): Promise<SessionDeletion>;
  /**
   * Whether there is such a session.
   *
   * Needs the scope `read`.
   */
  exists(session_id: string, options?: CallOptions): Promise<boolean>;
  /**
   * Adds one message; the session is made if it is new.
   *
   * Needs the scope `write`.
   */
  addMessage(session_id: string, fields: SessionsAddMessageRequest, options?: ChangeOptions): Promise<Message>;
  /**
   * The messages of a session, in the order they were added.
   *
   * Needs the scope `read`.
   */
  messages(session_id: string, fields?: SessionsMessagesRequest, options?: CallOptions): Promise<Page<Message>>;
  /** All items of `messages`, page by page as they are needed; `limit` is the size of a page. */
  iterateMessages(session_id: string, fields?: SessionsMessagesRequest, options?: CallOptions): AsyncGenerator<Message, void>;
  /**
   * Adds many messages at once, in order; mappings have `role`, `content` and, if known, `at`.
   *
   * Needs the scope `write`.
   */
  addMessages(session_id: string, fields: SessionsAddMessagesRequest, options?: ChangeOptions): Promise<Message[]>;
  /**
   * The metadata of a session.
   *
   * Needs the scope `read`.
   */
  getMetadata(session_id: string, options?: CallOptions): Promise<Record<string, unknown>>;
  /**
   * Merges metadata by key and returns the result; a dotted key reaches inside.
   *
   * With `if_match`, the `etag` of the metadata you have seen, only if nobody changed them since.
   *
   * Needs the scope `write`.
   */
  updateMetadata(session_id: string, fields: SessionsUpdateMetadataRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<Record<string, unknown>>;
  /**
   * Removes keys from the metadata and returns the rest; a dotted key reaches inside.
   *
   * With `if_match`, the `etag` of the metadata you have seen, only if nobody changed them since.
   *
   * Needs the scope `write`.
   */
  deleteMetadata(session_id: string, fields: SessionsDeleteMetadataRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<Record<string, unknown>>;
  /**
   * Keeps an answer that you made yourself; the session is made if it is new.
   *
   * With the `recall_id` of the facts it was made from, ratings of it improve recall. `used` names those it used, or
   * gives each a weight; if left out, `improve` detects them from the answer.
   *
   * `external_id` is an id of your own, such as that of a run, a trace or a message, which no other entry of the
   * project has. Feedback may name it in place of the `qa_id`. The same entry with it again is stored once.
   *
   * Needs the scope `write`.
   */
  addEntry(session_id: string, fields: SessionsAddEntryRequest, options?: ChangeOptions): Promise<Entry>;
  /**
   * The questions and answers of a session, in order.
   *
   * Needs the scope `read`.
   */
  entries(session_id: string, fields?: SessionsEntriesRequest, options?: CallOptions): Promise<Page<Entry>>;
  /** All items of `entries`, page by page as they are needed; `limit` is the size of a page. */
  iterateEntries(session_id: string, fields?: SessionsEntriesRequest, options?: CallOptions): AsyncGenerator<Entry, void>;
  /**
   * Rates the answer with this `external_id` or `qa_id`, in whichever session it is, comments on it, or both.
   *
   * The `status` of the result is `stored`, or `waiting` if there is no such answer yet: the rating then waits for
   * it, a day by default (the setting `waiting_days`), and is stored when the answer is. What the same author said
   * of it before is replaced.
   *
   * `rating` is a boolean, a word such as "up" or "VERY_NEGATIVE", or a number; `scale` has the worst and the best
   * number, where the number alone doesn't say it: (0, 1), (1, 5), (-1, 1). See `normalise_rating`.
   *
   * Needs the scope `feedback`.
   */
  rate(external_id: string, fields?: SessionsRateRequest, options?: ChangeOptions): Promise<RatingResult>;
  /**
   * Rates a whole session: `{"rating": "up" | "down" | None, "comment": "…"}`.
   *
   * An author has one opinion, the latest; without an author each is kept. None if a hook kept it back.
   *
   * Needs the scope `feedback`.
   */
  addSessionFeedback(session_id: string, fields: SessionsAddSessionFeedbackRequest, options?: ChangeOptions): Promise<Feedback | null>;
  /**
   * The active feedback about a session as a whole.
   *
   * Needs the scope `read`.
   */
  feedbacks(session_id: string, fields?: SessionsFeedbacksRequest, options?: CallOptions): Promise<Page<Feedback>>;
  /** All items of `feedbacks`, page by page as they are needed; `limit` is the size of a page. */
  iterateFeedbacks(session_id: string, fields?: SessionsFeedbacksRequest, options?: CallOptions): AsyncGenerator<Feedback, void>;
  /**
   * Gives up an alert that can't be delivered.
   *
   * Needs the scope `admin`.
   */
  discardAlert(alert_id: string, options?: ChangeOptions): Promise<Alert>;
  /**
   * Changes what a message says; its place, its time and opinions about it stay. An unknown one is `NotFound`.
   *
   * Needs the scope `write`.
   */
  updateMessage(session_id: string, message_id: string, fields: SessionsUpdateMessageRequest, options?: ChangeOptions): Promise<Message>;
  /**
   * Removes a message; opinions about it stay in the ledger. An unknown one is `NotFound`.
   *
   * Needs the scope `write`.
   */
  deleteMessage(session_id: string, message_id: string, options?: ChangeOptions): Promise<boolean>;
  /**
   * One question and answer.
   *
   * Needs the scope `read`.
   */
  entry(session_id: string, qa_id: string, options?: CallOptions): Promise<Entry>;
  /**
   * Rates an answer from 1 to 5, says something of it, or both; False if there is no such entry.
   *
   * What the same author said of it before is replaced.
   *
   * Needs the scope `feedback`.
   */
  addFeedback(session_id: string, qa_id: string, fields?: SessionsAddFeedbackRequest, options?: ChangeOptions): Promise<boolean>;
  /**
   * Clears the rating and the text of an answer, or those of one author; False if there is nothing to clear.
   *
   * Given the external id of an answer that is not there yet, the rating of this author that waits for it goes.
   *
   * Needs the scope `feedback`.
   */
  deleteFeedback(session_id: string, qa_id: string, fields?: SessionsDeleteFeedbackRequest, options?: ChangeOptions): Promise<boolean>;
}

/** Reports on feedback. */
export interface InsightMethods {
  /**
   * Satisfaction by a key of the sessions' metadata, such as `variant`, or by `dataset`, `model`, `source`, `author_kind` or `target_type`; `metadata.model` is the key of that name.
   *
   * Counts up, down and neutral opinions about sessions, answers, messages and executions (of answers, 4 and 5 are
   * up, 1 and 2 are down), each share with its 95% interval, the probability that one value is better than another,
   * and whether that is known well enough to stop. With `target_type`, only opinions about such things; of a `fact`,
   * `helpful` is up and `not_helpful` is down.
   *
   * Needs the scope `read`.
   */
  satisfaction(fields: InsightSatisfactionRequest, options?: CallOptions): Promise<Satisfaction>;
  /**
   * Satisfaction over time, by day or week, with intervals and counts; `by` and `target_type` as in `satisfaction`.
   *
   * Needs the scope `read`.
   */
  trend(fields?: InsightTrendRequest, options?: CallOptions): Promise<Trend>;
  /**
   * How much of what was shown in this time was rated until now: answers, executions and recalls.
   *
   * Needs the scope `read`.
   */
  coverage(fields?: InsightCoverageRequest, options?: CallOptions): Promise<Coverage>;
  /**
   * Counts the decisions of the execution cache by reason, and lists the newest.
   *
   * Needs the scope `read`.
   */
  cache(fields?: InsightCacheRequest, options?: CallOptions): Promise<CacheReport>;
  /**
   * Groups negative comments that mean the same, under their own words. No language model is needed. The newest 500 are read.
   *
   * Needs the scope `read`.
   */
  themes(fields?: InsightThemesRequest, options?: CallOptions): Promise<Themes>;
  /**
   * Lists changes in the last four weeks, or since a time, that chance does not explain, with the arithmetic.
   *
   * Down-votes are looked at in all, by dataset, by model, by what they are about, by the themes of comments, and by
   * keys of the sessions' metadata: those that have up to 20 values (the five with the fewest, because whatever is
   * looked at makes a change harder to distinguish from chance), and the one that `by` names. A change of policy
   * after which ratings got worse comes first, with its event.
   *
   * Needs the scope `read`.
   */
  notes(fields?: InsightNotesRequest, options?: CallOptions): Promise<Note[]>;
  /**
   * Summarizes the feedback of the last seven days, or of a period, compared with the period before.
   *
   * Needs the scope `read`.
   */
  digest(fields?: InsightDigestRequest, options?: CallOptions): Promise<Digest>;
  /**
   * Lists the tables that can be exported, with the types and meanings of their columns.
   *
   * Needs the scope `read`.
   */
  dictionary(options?: CallOptions): Promise<ExportTable[]>;
  /**
   * Rows of a table of the `dictionary`, in the order in which they came. Times are texts in ISO 8601, in UTC.
   *
   * With a dataset, a page may have fewer rows than `limit`, and there are more as long as it has a cursor.
   *
   * Needs the scope `read`.
   */
  rows(fields: InsightRowsRequest, options?: CallOptions): Promise<Page<Record<string, unknown>>>;
  /** All items of `rows`, page by page as they are needed; `limit` is the size of a page. */
  iterateRows(fields: InsightRowsRequest, options?: CallOptions): AsyncGenerator<Record<string, unknown>, void>;
  /**
   * Lines of training data, made from what people rated: for `kto`, `dpo`, `sft`, `triplets` (embedding models and rerankers), `text2sql` or `evals`.
   *
   * Each author has one vote about the same words; the larger side decides, and `agreement` is its share. Opinions
   * that were retracted don't count, nor do those of erased people. What rests on superseded or forgotten facts is
   * not taught as right. All phrasings of one need are on one side of the split. The same ledger gives the same
   * lines; if ratings change between two pages, the second is refused.
   *
   * Needs the scope `read`.
   */
  training(fields: InsightTrainingRequest, options?: CallOptions): Promise<TrainingPage>;
}

/** Databases that questions are asked of. */
export interface ConnectorsMethods {
  /**
   * Adds a database by its SQLAlchemy URL and reads its schema; nothing is kept if that fails.
   *
   * Secrets in the URL are references such as `${DB_PASSWORD}`, or are encrypted with HEEDFUL_SECRET_KEY. `role` is
   * the role that PostgreSQL runs queries as. Its login is refused if it may do more than read; `privileged` accepts
   * it. On a server, where it may lead, which variables it may refer to and what is privileged is for the operator
   * to say. Values of `sensitive_columns`, each as `table.column`, are not read to recognise them in questions.
   *
   * Needs the scope `admin`.
   */
  create(fields: ConnectorsCreateRequest, options?: ChangeOptions): Promise<Connector>;
  /**
   * All of them, in the order they were added.
   *
   * Needs the scope `read`.
   */
  list(options?: CallOptions): Promise<Connector[]>;
  /**
   * One connector.
   *
   * Needs the scope `read`.
   */
  get(connector_id: string, options?: CallOptions): Promise<Connector>;
  /**
   * Removes a connector with its executions and golden examples.
   *
   * Needs the scope `admin`.
   */
  delete(connector_id: string, options?: ChangeOptions): Promise<boolean>;
  /**
   * Reads the schema again; what was proven for another schema is no longer used. `sensitive_columns` replaces the list of columns whose values are not read to recognise them in questions; empty, it allows all.
   *
   * Needs the scope `admin`.
   */
  refresh(connector_id: string, fields?: ConnectorsRefreshRequest, options?: ChangeOptions): Promise<Connector>;
  /**
   * Switches on a connector that was imported, after a look at its URL; the same rules hold as for `create`.
   *
   * Needs the scope `admin`.
   */
  confirm(connector_id: string, fields?: ConnectorsConfirmRequest, options?: ChangeOptions): Promise<Connector>;
  /**
   * Tables and columns, as they were read last.
   *
   * Needs the scope `read`.
   */
  schema(connector_id: string, options?: CallOptions): Promise<Record<string, unknown>>;
}

/** SQL that ran. */
export interface ExecutionsMethods {
  /**
   * Runs one statement that only reads, and keeps it with its result.
   *
   * With the `question` that it answers, it can be found by the cache. `parameters` fill `:name` places.
   *
   * `external_id` is an id of your own, such as that of a run or a span, which no other execution of the project
   * has. Feedback may name it in place of the `execution_id`. The same query with it again runs once.
   *
   * `audience` is whom it may be reused for, such as a user or a tenant; without one, that of the chat session, or
   * everybody.
   *
   * Needs the scope `write`.
   */
  executeQuery(fields: ExecutionsExecuteQueryRequest, options?: ChangeOptions): Promise<Execution>;
  /**
   * Executions, the newest first.
   *
   * Needs the scope `read`.
   */
  list(fields?: ExecutionsListRequest, options?: CallOptions): Promise<Page<Execution>>;
  /** All items of `list`, page by page as they are needed; `limit` is the size of a page. */
  iterate(fields?: ExecutionsListRequest, options?: CallOptions): AsyncGenerator<Execution, void>;
  /**
   * Runs the SQL that a message of a chat has, for the audience of its chat session.
   *
   * Needs the scope `write`.
   */
  executeFromChat(chat_message_id: string, fields?: ExecutionsExecuteFromChatRequest, options?: ChangeOptions): Promise<Execution>;
  /**
   * One execution with its result.
   *
   * Needs the scope `read`.
   */
  get(execution_id: string, options?: CallOptions): Promise<Execution>;
  /**
   * Removes an execution with its result; SQL that was wrong stays blocked. An unknown one is `NotFound`.
   *
   * Needs the scope `write`.
   */
  delete(execution_id: string, options?: ChangeOptions): Promise<boolean>;
}

/** What people say of executions and messages. */
export interface FeedbackMethods {
  /**
   * Says whether an execution, or the message of a chat, was right.
   *
   * Positive feedback lets an execution be used again; negative feedback keeps it, and all SQL like it, from that
   * until it is retracted. An author has one opinion of a thing, the latest.
   *
   * Needs the scope `feedback`.
   */
  create(fields: FeedbackCreateRequest, options?: ChangeOptions): Promise<ExecutionFeedback>;
  /**
   * Feedbacks, the newest first; `search` finds those whose text has it, in any case.
   *
   * Needs the scope `read`.
   */
  list(fields?: FeedbackListRequest, options?: CallOptions): Promise<FeedbackList>;
  /**
   * Says that an execution was right.
   *
   * Needs the scope `feedback`.
   */
  createPositive(fields?: FeedbackCreatePositiveRequest, options?: ChangeOptions): Promise<ExecutionFeedback>;
  /**
   * Those that say something was right.
   *
   * Needs the scope `read`.
   */
  listPositive(fields?: FeedbackListPositiveRequest, options?: CallOptions): Promise<FeedbackList>;
  /**
   * Says that an execution was wrong, and why.
   *
   * Needs the scope `feedback`.
   */
  createNegative(fields?: FeedbackCreateNegativeRequest, options?: ChangeOptions): Promise<ExecutionFeedback>;
  /**
   * Those that say something was wrong.
   *
   * Needs the scope `read`.
   */
  listNegative(fields?: FeedbackListNegativeRequest, options?: CallOptions): Promise<FeedbackList>;
  /**
   * Deletes many feedbacks; those that are not there are in `failed_ids`.
   *
   * Needs the scope `feedback`.
   */
  bulkDelete(fields: FeedbackBulkDeleteRequest, options?: ChangeOptions): Promise<BulkDeletion>;
  /**
   * One feedback.
   *
   * Needs the scope `read`.
   */
  get(feedback_id: string, options?: CallOptions): Promise<ExecutionFeedback>;
  /**
   * Changes what is given and leaves the rest; `feedback=None` clears the text.
   *
   * With `if_match`, the `etag` of what you have seen, only if nobody changed it since.
   *
   * Needs the scope `feedback`.
   */
  update(feedback_id: string, fields?: FeedbackUpdateRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ExecutionFeedback>;
  /**
   * Deletes a feedback with its text; an unknown one is `NotFound`.
   *
   * Needs the scope `feedback`.
   */
  delete(feedback_id: string, options?: ChangeOptions): Promise<boolean>;
  /**
   * Lists the feedback about one message.
   *
   * Needs the scope `read`.
   */
  getFeedbackForMessage(chat_message_id: string, fields?: FeedbackGetFeedbackForMessageRequest, options?: CallOptions): Promise<FeedbackList>;
}

/** Questions of data. */
export interface ChatMethods {
  /**
   * Looks for executions that answer a question, and says of each whether it may be used, and why.
   *
   * Similarity finds candidates; it never decides. The first match that may be used is run now; with
   * `reuse="result"`, its stored result is taken instead, as old as it is.
   *
   * With an `audience`, what is proven for it comes first, then what is proven for everybody; what is proven for
   * another audience does not exist. SQL without an audience that is about one person ("my orders", or a value that
   * the question doesn't name) is used for the `author` who proved it.
   *
   * Needs the scope `write`.
   */
  executionCacheLookup(fields: ChatExecutionCacheLookupRequest, options?: ChangeOptions): Promise<CacheLookup>;
  /**
   * Says that what was suggested for a question is what it means, and runs it.
   *
   * `execution_id` is that of the suggestion. The run is rated as right by the author, so it is proven for the
   * question from then on; retract the feedback to undo it. Where that isn't suggested any more, it is a `Conflict`.
   *
   * Needs the scope `write`.
   */
  confirmSuggestion(fields: ChatConfirmSuggestionRequest, options?: ChangeOptions): Promise<Execution>;
  /**
   * Which kinds of question are proven on a connector, which were asked and are refused, by gate, and which question to prove next: the one whose proof would answer most of what is refused.
   *
   * `limit` is how many of each are listed.
   *
   * Needs the scope `read`.
   */
  executionCacheCoverage(fields?: ChatExecutionCacheCoverageRequest, options?: CallOptions): Promise<CacheCoverage>;
  /**
   * The SQL for a question: proven if it can be, else written by the language model.
   *
   * What is proven for the audience of the chat session comes first, then what is proven for everybody. SQL without
   * an audience that is about one person ("my orders", or a value that the question doesn't name) is used in the
   * chat session where it ran, or else for the `author` who proved it.
   *
   * The model reads the facts of the datasets `contexts` and `schema_metadata` that are nearest to the question, and
   * `remarks` before them.
   *
   * `feedback_cutoff` in [0, 1] says how reliable a rated execution must be to be an example for the model: the
   * share of positive opinions, with one of each kind added. Higher is stricter.
   *
   * Needs the scope `write`.
   */
  chatToSql(chat_session_id: string, fields: ChatChatToSqlRequest, options?: ChangeOptions): Promise<ChatSql>;
  /**
   * The SQL for a question, run now, and what it gave in words.
   *
   * If nothing proven answers it and it has exactly one likely reading, that is its `suggestion`; without a language
   * model, it is all there is, and nothing runs before `confirm_suggestion`.
   *
   * Needs the scope `write`.
   */
  chatToAnswer(chat_session_id: string, fields: ChatChatToAnswerRequest, options?: ChangeOptions): Promise<ChatAnswer>;
}

/** Conversations about data. */
export interface ChatSessionsMethods {
  /**
   * Begins a conversation; what runs in it is for its `audience`, and uses nothing that is for another.
   *
   * Needs the scope `write`.
   */
  create(fields?: ChatSessionsCreateRequest, options?: ChangeOptions): Promise<ChatSession>;
  /**
   * Chat sessions, the newest first.
   *
   * Needs the scope `read`.
   */
  list(fields?: ChatSessionsListRequest, options?: CallOptions): Promise<Page<ChatSession>>;
  /** All items of `list`, page by page as they are needed; `limit` is the size of a page. */
  iterate(fields?: ChatSessionsListRequest, options?: CallOptions): AsyncGenerator<ChatSession, void>;
  /**
   * One chat session.
   *
   * Needs the scope `read`.
   */
  get(chat_session_id: string, options?: CallOptions): Promise<ChatSession>;
  /**
   * Removes a conversation with its messages; executions stay, as they belong to their connector.
   *
   * Needs the scope `write`.
   */
  delete(chat_session_id: string, options?: ChangeOptions): Promise<boolean>;
  /**
   * Lists the questions of a chat, oldest first, with their SQL.
   *
   * Needs the scope `read`.
   */
  getQuestions(chat_session_id: string, options?: CallOptions): Promise<ChatQuestion[]>;
}

/** Questions with the SQL that answers them. */
export interface GoldenExamplesMethods {
  /**
   * Adds an example, for everybody or for one `audience`; one for the same question, connector and audience is a `Conflict`.
   *
   * Needs the scope `write`.
   */
  create(fields: GoldenExamplesCreateRequest, options?: ChangeOptions): Promise<GoldenExample>;
  /**
   * Examples, the newest first.
   *
   * Needs the scope `read`.
   */
  list(fields?: GoldenExamplesListRequest, options?: CallOptions): Promise<GoldenExample[]>;
  /**
   * Makes an example of an execution that people say was right, and nobody that it was wrong. It is for the audience of the execution, or for the one that is given. A question in the first person whose SQL has a value that it doesn't name needs one.
   *
   * Needs the scope `write`.
   */
  promote(fields: GoldenExamplesPromoteRequest, options?: ChangeOptions): Promise<GoldenExample>;
  /**
   * Adds examples, mappings with `question`, `sql_query` and perhaps `audience`, all or none.
   *
   * A question that has an example already gets the new SQL.
   *
   * Needs the scope `write`.
   */
  importExamples(fields: GoldenExamplesImportExamplesRequest, options?: ChangeOptions): Promise<GoldenExample[]>;
  /**
   * One example.
   *
   * Needs the scope `read`.
   */
  get(example_id: string, options?: CallOptions): Promise<GoldenExample>;
  /**
   * Changes what is given and leaves the rest; `audience=None` makes it an example for everybody.
   *
   * With `if_match`, the `etag` of what you have seen, only if nobody changed it since.
   *
   * Needs the scope `write`.
   */
  update(example_id: string, fields?: GoldenExamplesUpdateRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<GoldenExample>;
  /**
   * Removes an example; an unknown one is `NotFound`.
   *
   * Needs the scope `write`.
   */
  delete(example_id: string, options?: ChangeOptions): Promise<boolean>;
}

/** What people disliked, as work to do. */
export interface ReviewMethods {
  /**
   * Items, those with the most opinions first, then the newest; `status=None` lists all.
   *
   * Needs the scope `read`.
   */
  list(fields?: ReviewListRequest, options?: CallOptions): Promise<Page<ReviewItem>>;
  /** All items of `list`, page by page as they are needed; `limit` is the size of a page. */
  iterate(fields?: ReviewListRequest, options?: CallOptions): AsyncGenerator<ReviewItem, void>;
  /**
   * An item with the answer, the evidence, all opinions, what was done, and what can be done.
   *
   * Needs the scope `read`.
   */
  get(item_id: string, options?: CallOptions): Promise<ReviewCase>;
  /**
   * Says who sees to an item; None for nobody.
   *
   * Needs the scope `feedback` and `read`.
   */
  assign(item_id: string, fields: ReviewAssignRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewItem>;
  /**
   * Says that an item is fixed. A negative opinion that is given afterwards opens it again.
   *
   * Of an item that you resolved before, another note is kept beside the first.
   *
   * Needs the scope `feedback` and `read`.
   */
  resolve(item_id: string, fields?: ReviewResolveRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewItem>;
  /**
   * Says that there is nothing to fix, even if others complain again.
   *
   * Needs the scope `feedback` and `read`.
   */
  dismiss(item_id: string, fields?: ReviewDismissRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewItem>;
  /**
   * Says that an item is work to do after all.
   *
   * Needs the scope `feedback` and `read`.
   */
  reopen(item_id: string, fields?: ReviewReopenRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewItem>;
  /**
   * Does something about an item; `undo` reverts it.
   *
   * `supersede` replaces the fact `fact_id` with `text`, or with the fact `by`. `retract` retracts the opinion
   * `event_id`. `teach` makes a fact of the correction in it, or of `text`, since a visitor's word alone teaches
   * nothing. `block` says that the execution `execution_id` is wrong, with `note` as the reason. `promote` makes a
   * golden example of it, of its own `question` or another; if nobody says that it is right, the reviewer does.
   * `add_example` adds the golden example `sql_query`, for the item's question and connector or for others. The item
   * stays open until it is resolved.
   *
   * Needs the scope `write` and `read`.
   */
  fix(item_id: string, fields: ReviewFixRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewEvent>;
  /**
   * Asks an item's question again, and compares the answer now with the disliked one. Nothing is stored.
   *
   * Feedback ranks the facts, even if it did not before. For an execution, it is the SQL that the cache would run.
   *
   * Needs the scope `read`.
   */
  askAgain(item_id: string, options?: ChangeOptions): Promise<ReviewComparison>;
  /**
   * Undoes an action on an item with everything it did. Doing it again changes nothing.
   *
   * Needs the scope `write` and `read`.
   */
  undo(event_id: string, fields?: ReviewUndoRequest, options?: ChangeOptions): Promise<ReviewEvent>;
}

/** Who may call. */
export interface KeysMethods {
  /**
   * Makes a key. `scopes` are some of read, write, feedback and admin, which includes the others.
   *
   * `rate_limit` is how many calls a second it may make; what the server allows, if left out.
   *
   * Needs the scope `admin`.
   */
  create(fields: KeysCreateRequest, options?: ChangeOptions): Promise<NewKey>;
  /**
   * All keys of the project, oldest first, also those that were revoked.
   *
   * Needs the scope `admin`.
   */
  list(options?: CallOptions): Promise<Key[]>;
  /**
   * Signs a token with which a browser may rate the things named, for `expires_in` seconds, and nothing else.
   *
   * The feedback is by `author`, somebody you can name. Without one it is by a visitor: it
   * is counted and reviewed, but teaches no fact, moves no rank and blocks no SQL. `subject` tells such visitors
   * apart, by the id of their visit for example, of which a hash is kept; those without one have one vote together.
   *
   * Needs the scope `feedback`.
   */
  createToken(fields: KeysCreateTokenRequest, options?: ChangeOptions): Promise<FeedbackToken>;
  /**
   * Makes a new secret to sign tokens and logins with, for the whole store.
   *
   * What was signed with the old one ends at once, or after `grace` seconds.
   *
   * Needs the scope `admin`, of the whole server.
   */
  rotateSigning(fields?: KeysRotateSigningRequest, options?: ChangeOptions): Promise<SigningRotation>;
  /**
   * Makes a key useless, within a second on servers that run.
   *
   * Needs the scope `admin`.
   */
  revoke(key_id: string, options?: ChangeOptions): Promise<Key>;
}

/** Work in the background. */
export interface JobsMethods {
  /**
   * Has `improve` run in the background; if a job waits to do the same, that one is returned.
   *
   * Needs the scope `write`.
   */
  improve(fields?: JobsImproveRequest, options?: ChangeOptions): Promise<Job>;
  /**
   * Jobs, the newest first. With the kind `deliver`, the alerts of the outbox, as jobs.
   *
   * Needs the scope `read`.
   */
  list(fields?: JobsListRequest, options?: CallOptions): Promise<Page<Job>>;
  /** All items of `list`, page by page as they are needed; `limit` is the size of a page. */
  iterate(fields?: JobsListRequest, options?: CallOptions): AsyncGenerator<Job, void>;
  /**
   * One job.
   *
   * Needs the scope `read`.
   */
  get(job_id: string, options?: CallOptions): Promise<Job>;
  /**
   * Has a job not done: at once if it waits, at its next step if it runs. What has ended stays as it is.
   *
   * Needs the scope `write`.
   */
  cancel(job_id: string, options?: ChangeOptions): Promise<Job>;
  /**
   * Adds a job that does the same as one that failed or was cancelled.
   *
   * Needs the scope `write`.
   */
  retry(job_id: string, options?: ChangeOptions): Promise<Job>;
}

/** Liveness, readiness, metrics, projects, jobs and audit trail of the server. */
export interface ServerMethods {
  /** Whether the process is alive. */
  healthz(options?: CallOptions): Promise<{
  status: string;
}>;
  /** Whether the store can be used. */
  readyz(options?: CallOptions): Promise<{
  status: string;
}>;
  /** Numbers for Prometheus; needs `admin`. */
  metrics(options?: CallOptions): Promise<string>;
  /** The audit trail of all projects, newest first, 100 entries a page; for keys that open all projects. */
  audit(fields?: ServerAuditRequest, options?: CallOptions): Promise<Page<AuditEntry>>;
  /** All items of `audit`, page by page as they are needed; `limit` is the size of a page. */
  iterateAudit(fields?: ServerAuditRequest, options?: CallOptions): AsyncGenerator<AuditEntry, void>;
  /** The newest 100 jobs of all projects and of the store itself; for keys that open all projects. */
  jobs(options?: CallOptions): Promise<Job[]>;
  /** The projects that the key opens. */
  projects(options?: CallOptions): Promise<string[]>;
}

/** One project on a server. */
export interface Heedful {
  readonly sessions: SessionsMethods;
  readonly insight: InsightMethods;
  readonly connectors: ConnectorsMethods;
  readonly executions: ExecutionsMethods;
  readonly feedback: FeedbackMethods;
  readonly chat: ChatMethods;
  readonly chatSessions: ChatSessionsMethods;
  readonly goldenExamples: GoldenExamplesMethods;
  readonly review: ReviewMethods;
  readonly keys: KeysMethods;
  readonly jobs: JobsMethods;
  readonly server: ServerMethods;
  /**
   * Stores facts: a text, many texts, or files and folders given as `Path`; a `Document` is one that was read elsewhere.
   *
   * Long texts are split. A text with the same source and metadata as one that is there is not stored twice. A
   * file replaces what it said when it was remembered before. Files that can't be read are in `errors`.
   * From `expires_at` on, a time with a zone, they are not recalled. A fact that is there already takes this end, or
   * has none any more. With `self_improvement`, `improve` runs in the background afterwards.
   *
   * `conflicts` are existing facts about the same thing with another number, date or name. Nothing is done about
   * them: they are in the review queue, and `supersede` replaces one of the two.
   *
   * Needs the scope `write`.
   */
  remember(fields: RememberRequest, options?: ChangeOptions & Pick<Extras, "progress">): Promise<RememberResult>;
  /**
   * The facts of a dataset, or of one source, in the order in which they were stored; `where` filters by metadata, as in `recall`.
   *
   * Needs the scope `read`.
   */
  facts(fields?: FactsRequest, options?: CallOptions): Promise<Page<Fact>>;
  /** All items of `facts`, page by page as they are needed; `limit` is the size of a page. */
  iterateFacts(fields?: FactsRequest, options?: CallOptions): AsyncGenerator<Fact, void>;
  /**
   * Finds the facts that answer a query, best first.
   *
   * Left out, `boost_by_usefulness` follows the policy of the dataset or project, which is `adaptive` where none was
   * set: feedback on similar queries moves a fact as far as its evidence goes, and without any, facts rank by
   * relevance. With `True`, or a weight in place of `usefulness_weight`, and where no policy was set, `score =
   * (1 - usefulness_weight) × relevance + usefulness_weight × usefulness`. With `False`, relevance alone counts.
   *
   * Facts below `min_usefulness` are left out. `policy` chooses the rule of this call. With the chance of
   * `exploration`, a fact that nobody has judged gets the last place, drawn with `seed`. `where` filters by
   * metadata. `explain` adds the reasons. `feedback_influence` is another name of the weight: above 0, it is that of
   * the boost, and 0 turns the boost off.
   *
   * With `answer`, the result has one: written by the language model if there is one, else made of the sentences
   * that answer; `on_token` gets its parts as they come. With a `session_id` it always has, and question and answer
   * are kept as an entry of that session under its `qa_id`.
   *
   * With an `external_id`, one of your own such as that of a run or a trace, feedback may name that in place of the
   * `recall_id`, and of the `qa_id`. The same recall with it again returns what the first one showed.
   *
   * Its `next_cursor`, as `cursor` of the same recall, gets the next `top_k` facts: each page is a separate recall,
   * with its own receipt and ranks, and shows nothing that a page before it showed.
   *
   * Needs the scope `read`, and `write` with `session_id`.
   */
  recall(fields: RecallRequest, options?: ChangeOptions & Pick<Extras, "onToken">): Promise<Recall>;
  /**
   * Turns the feedback of sessions (of all, if none are named) into better recall of a dataset, or of all.
   *
   * Feedback is processed a few seconds after it was given, unless `auto_improve` is off: call this to wait for it.
   *
   * Ratings become signals about the facts that an answer used. Well-rated answers, and comments that correct a
   * fact, become facts. With a language model, it also reads facts for what they mention, some in each call.
   * Running it again changes nothing; changing or deleting a rating undoes what it did.
   *
   * Needs the scope `write`.
   */
  improve(fields?: ImproveRequest, options?: ChangeOptions): Promise<Improvement>;
  /**
   * Says how useful facts were for a query.
   *
   * Facts that are not there, or not in the `dataset` if one is given, are listed in `errors` with their index, and
   * the others are applied; if there are no others, the call raises NotFound. A call that is sent again with its
   * `idempotency_key` counts once and returns the first result. So does each signal with its `external_id`, which
   * `retract` takes, too.
   *
   * Needs the scope `feedback`.
   */
  signal(fields: SignalRequest, options?: ChangeOptions): Promise<SignalResult>;
  /**
   * Returns the policy that recalls follow, and why: the choice for the dataset, else for the project, else the default.
   *
   * Without any choice, recalls use `adaptive`, and those with `boost_by_usefulness` or a weight `documented`.
   *
   * Needs the scope `read`.
   */
  policy(fields?: PolicyRequest, options?: CallOptions): Promise<PolicyInUse>;
  /**
   * Chooses the rule for recalls of a dataset, or of the whole project; None takes the choice back.
   *
   * `retract` of the event brings the earlier choice back.
   *
   * Needs the scope `write`.
   */
  setPolicy(fields: SetPolicyRequest, options?: ChangeOptions): Promise<PolicyChange>;
  /**
   * Removes facts, or all facts of a source, or a whole dataset, with everything derived from them.
   *
   * Facts that they superseded are recalled again: `restored` names them. An unknown id raises NotFound, and
   * nothing is forgotten.
   *
   * Or erases the `author` of exactly this name from the project: a pseudonym takes the place of the name, their
   * words go, and every score stays what it is. Doing it again changes nothing.
   *
   * Needs the scope `write`, and `admin` with `author`.
   */
  forget(fields?: ForgetRequest, options?: ChangeOptions): Promise<ForgetResult>;
  /**
   * How useful the facts of a dataset are: totals, the distribution, the most and least useful, and those that help in one context and hurt in another.
   *
   * Needs the scope `read`.
   */
  usefulnessStats(fields?: UsefulnessStatsRequest, options?: CallOptions): Promise<UsefulnessStats>;
  /**
   * Tries other policies and weights on the recalls that people rated.
   *
   * The facts that each recall showed are ordered again by the opinions recorded before it, and judged by its own
   * `helpful` and `not_helpful` ratings. Both policies and the weights 0.1 to 0.9 are tried if none are given.
   * Nothing is changed.
   *
   * Needs the scope `read`.
   */
  replay(fields?: ReplayRequest, options?: ChangeOptions): Promise<ReplayReport>;
  /**
   * Asks what people rated well again, of the store with a change, and says what would get worse.
   *
   * A rated question is one with facts that were called helpful, or an answer with 4, 5 or up; with SQL that was
   * rated as right, it is run again. Ratings of visitors don't count, nor those that were retracted. Every change
   * that is given is tried, all at once. Without any, answers and rows are compared with those that were rated.
   *
   * A question is asked as if nobody had rated it or another phrasing of it: its own ratings would put the facts
   * that helped first, whatever is changed. `own_votes` lets them count, as they do for those who ask it.
   *
   * Facts that were superseded, forgotten or have expired are listed apart. Nothing is stored, not even receipts.
   * With `embedding` or `as_of`, the facts are copied to a temporary file for as long as it takes.
   *
   * Needs the scope `write`, and `admin` with `embedding` or `as_of`.
   */
  regress(fields?: RegressRequest, options?: ChangeOptions & Pick<Extras, "progress">): Promise<RegressReport>;
  /**
   * The names of the project's datasets that have facts or were made with `create_dataset`, oldest first.
   *
   * Needs the scope `read`.
   */
  datasets(options?: CallOptions): Promise<string[]>;
  /**
   * Looks for duplicates, near-duplicates, and facts that were never recalled, always ignored or have expired; says what to do about each. Nothing is changed.
   *
   * Needs the scope `read`.
   */
  checkFacts(fields?: CheckFactsRequest, options?: CallOptions): Promise<FactReport>;
  /**
   * Checks the store, the model, the scores, the indexes and the sessions; repairs what can be rebuilt.
   *
   * Needs the scope `admin`.
   */
  doctor(fields?: DoctorRequest, options?: ChangeOptions): Promise<Check[]>;
  /**
   * Who was refused what in this project, over HTTP, and what admins did, the newest first.
   *
   * Needs the scope `admin`.
   */
  audit(fields?: AuditRequest, options?: CallOptions): Promise<Page<AuditEntry>>;
  /** All items of `audit`, page by page as they are needed; `limit` is the size of a page. */
  iterateAudit(fields?: AuditRequest, options?: CallOptions): AsyncGenerator<AuditEntry, void>;
  /**
   * Says how useful the facts of one recall were; those shown and never named are `ignored`.
   *
   * If only facts that were `not_helpful` are named, nothing is said of the others. With the `answer` that was made
   * from them, those not named are what `detect` says of them, or nothing.
   * Facts are named by id, by rank (a whole number), or by their hits. It may come days later. Saying the same of a
   * fact again counts once, and a fact that is named later is no longer `ignored`.
   *
   * Named facts that the recall did not show are listed in `errors` with their index in `used`, `helpful` and
   * `not_helpful`, one after another, and nothing is said of facts that were not named. If no named fact was shown,
   * the call raises NotFound.
   *
   * Needs the scope `feedback`.
   */
  signalRecall(recall_id: string, fields?: SignalRecallRequest, options?: ChangeOptions): Promise<SignalResult>;
  /**
   * Which of the facts that a recall showed did an answer use? Works without a language model.
   *
   * Each fact is `used` or `ignored` with a confidence and reasons, or None where it is unclear.
   *
   * Needs the scope `read`.
   */
  detect(recall_id: string, fields: DetectRequest, options?: ChangeOptions): Promise<Detection[]>;
  /**
   * Undoes a signal, a feedback, a supersession or what a reviewer did: everything becomes as if it had never been.
   *
   * Needs the scope `feedback`, and `write` if making the `event_id` takes that.
   */
  retract(event_id: string, fields?: RetractRequest, options?: ChangeOptions): Promise<Retraction>;
  /**
   * Corrects a fact: from now on `text`, or the fact `by`, is recalled in its place.
   *
   * The old fact stays in history; `retract` of the event brings it back.
   *
   * Needs the scope `write`.
   */
  supersede(fact_id: string, fields?: SupersedeRequest, options?: ChangeOptions): Promise<Supersession>;
  /**
   * Returns the facts that one recall showed, with ranks and scores.
   *
   * Needs the scope `read`.
   */
  receipt(recall_id: string, options?: CallOptions): Promise<Receipt>;
  /**
   * The usefulness of one fact: over all, by context, and the signals behind it.
   *
   * Needs the scope `read`.
   */
  factStats(fact_id: string, options?: CallOptions): Promise<FactStats>;
  /**
   * How the score of one fact came to be, signal by signal, and what it superseded or was superseded by.
   *
   * It lists the newest 1,000 signals; `event_count` says how many there are.
   *
   * Needs the scope `read`.
   */
  factHistory(fact_id: string, options?: CallOptions): Promise<FactHistory>;
  /**
   * One fact: its text, its metadata, and its position.
   *
   * Needs the scope `read`.
   */
  fact(fact_id: string, options?: CallOptions): Promise<Fact>;
  /**
   * Makes a dataset before it has facts. One that is there stays as it is, with `metadata` merged into it.
   *
   * Needs the scope `write`.
   */
  createDataset(dataset: string, fields?: CreateDatasetRequest, options?: ChangeOptions): Promise<Dataset>;
  /**
   * One dataset: its metadata, and how many facts it has.
   *
   * Needs the scope `read`.
   */
  getDataset(dataset: string, options?: CallOptions): Promise<Dataset>;
}

/** How each method is called over the wire. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "remember": {"method":"POST","path":"{project}/facts","places":[],"fields":"body","slow":true,"callbacks":{"progress":"progress"}},
  "facts": {"method":"GET","path":"{project}/facts","places":[],"fields":"query","iterate":"iterateFacts"},
  "recall": {"method":"POST","path":"{project}/recall","places":[],"fields":"body","slow":true,"callbacks":{"on_token":"onToken"}},
  "improve": {"method":"POST","path":"{project}/improve","places":[],"fields":"body","slow":true},
  "signal": {"method":"POST","path":"{project}/signals","places":[],"fields":"body","once":true},
  "policy": {"method":"GET","path":"{project}/policy","places":[],"fields":"query"},
  "setPolicy": {"method":"PUT","path":"{project}/policy","places":[],"fields":"body"},
  "forget": {"method":"POST","path":"{project}/forget","places":[],"fields":"body","once":true},
  "usefulnessStats": {"method":"GET","path":"{project}/stats/usefulness","places":[],"fields":"query"},
  "replay": {"method":"POST","path":"{project}/replay","places":[],"fields":"body","slow":true},
  "regress": {"method":"POST","path":"{project}/regress","places":[],"fields":"body","slow":true,"callbacks":{"progress":"progress"}},
  "datasets": {"method":"GET","path":"{project}/datasets","places":[]},
  "checkFacts": {"method":"GET","path":"{project}/stats/facts","places":[],"fields":"query","slow":true},
  "doctor": {"method":"POST","path":"{project}/doctor","places":[],"fields":"body","slow":true},
  "audit": {"method":"GET","path":"{project}/audit","places":[],"fields":"query","iterate":"iterateAudit"},
  "sessions.create": {"method":"POST","path":"{project}/sessions","places":[],"fields":"body","once":true},
  "sessions.list": {"method":"GET","path":"{project}/sessions","places":[],"fields":"query","iterate":"iterate"},
  "sessions.feedbackMetrics": {"method":"GET","path":"{project}/metrics/feedback","places":[]},
  "sessions.alerts": {"method":"GET","path":"{project}/alerts","places":[],"fields":"query","iterate":"iterateAlerts"},
  "sessions.deliverAlerts": {"method":"POST","path":"{project}/alerts/deliver","places":[],"slow":true},
  "insight.satisfaction": {"method":"GET","path":"{project}/insight/satisfaction","places":[],"fields":"query"},
  "insight.trend": {"method":"GET","path":"{project}/insight/trend","places":[],"fields":"query"},
  "insight.coverage": {"method":"GET","path":"{project}/insight/coverage","places":[],"fields":"query"},
  "insight.cache": {"method":"GET","path":"{project}/insight/cache","places":[],"fields":"query"},
  "insight.themes": {"method":"GET","path":"{project}/insight/themes","places":[],"fields":"query","slow":true},
  "insight.notes": {"method":"GET","path":"{project}/insight/notes","places":[],"fields":"query","slow":true},
  "insight.digest": {"method":"GET","path":"{project}/insight/digest","places":[],"fields":"query","slow":true},
  "insight.dictionary": {"method":"GET","path":"{project}/insight/dictionary","places":[]},
  "insight.rows": {"method":"GET","path":"{project}/insight/rows","places":[],"fields":"query","slow":true,"iterate":"iterateRows"},
  "insight.training": {"method":"GET","path":"{project}/insight/training","places":[],"fields":"query","slow":true},
  "connectors.create": {"method":"POST","path":"{project}/connectors","places":[],"fields":"body","once":true,"slow":true},
  "connectors.list": {"method":"GET","path":"{project}/connectors","places":[]},
  "executions.executeQuery": {"method":"POST","path":"{project}/executions","places":[],"fields":"body","once":true,"slow":true},
  "executions.list": {"method":"GET","path":"{project}/executions","places":[],"fields":"query","iterate":"iterate"},
  "feedback.create": {"method":"POST","path":"{project}/feedback","places":[],"fields":"body","once":true},
  "feedback.list": {"method":"GET","path":"{project}/feedback","places":[],"fields":"query"},
  "feedback.createPositive": {"method":"POST","path":"{project}/feedback/positive","places":[],"fields":"body","once":true},
  "feedback.listPositive": {"method":"GET","path":"{project}/feedback/positive","places":[],"fields":"query"},
  "feedback.createNegative": {"method":"POST","path":"{project}/feedback/negative","places":[],"fields":"body","once":true},
  "feedback.listNegative": {"method":"GET","path":"{project}/feedback/negative","places":[],"fields":"query"},
  "feedback.bulkDelete": {"method":"POST","path":"{project}/feedback/bulk-delete","places":[],"fields":"body","once":true},
  "chat.executionCacheLookup": {"method":"POST","path":"{project}/execution-cache-lookup","places":[],"fields":"body","slow":true},
  "chat.confirmSuggestion": {"method":"POST","path":"{project}/confirm-suggestion","places":[],"fields":"body","once":true,"slow":true},
  "chat.executionCacheCoverage": {"method":"GET","path":"{project}/execution-cache-coverage","places":[],"fields":"query","slow":true},
  "chatSessions.create": {"method":"POST","path":"{project}/chat-sessions","places":[],"fields":"body","once":true},
  "chatSessions.list": {"method":"GET","path":"{project}/chat-sessions","places":[],"fields":"query","iterate":"iterate"},
  "goldenExamples.create": {"method":"POST","path":"{project}/golden-examples","places":[],"fields":"body","once":true},
  "goldenExamples.list": {"method":"GET","path":"{project}/golden-examples","places":[],"fields":"query"},
  "goldenExamples.promote": {"method":"POST","path":"{project}/golden-examples/promote","places":[],"fields":"body","once":true},
  "goldenExamples.importExamples": {"method":"POST","path":"{project}/golden-examples/import","places":[],"fields":"body","slow":true},
  "review.list": {"method":"GET","path":"{project}/review","places":[],"fields":"query","iterate":"iterate"},
  "keys.create": {"method":"POST","path":"{project}/keys","places":[],"fields":"body","once":true},
  "keys.list": {"method":"GET","path":"{project}/keys","places":[]},
  "keys.createToken": {"method":"POST","path":"{project}/tokens","places":[],"fields":"body"},
  "keys.rotateSigning": {"method":"POST","path":"{project}/keys/rotate-signing","places":[],"fields":"body","once":true},
  "jobs.improve": {"method":"POST","path":"{project}/jobs/improve","places":[],"fields":"body"},
  "jobs.list": {"method":"GET","path":"{project}/jobs","places":[],"fields":"query","iterate":"iterate"},
  "signalRecall": {"method":"POST","path":"{project}/recalls/{recall_id}/signals","places":["recall_id"],"fields":"body","once":true},
  "detect": {"method":"POST","path":"{project}/recalls/{recall_id}/detect","places":["recall_id"],"fields":"body"},
  "retract": {"method":"POST","path":"{project}/events/{event_id}/retract","places":["event_id"],"fields":"body"},
  "supersede": {"method":"POST","path":"{project}/facts/{fact_id}/supersede","places":["fact_id"],"fields":"body","once":true},
  "receipt": {"method":"GET","path":"{project}/recalls/{recall_id}","places":["recall_id"]},
  "factStats": {"method":"GET","path":"{project}/facts/{fact_id}/stats","places":["fact_id"]},
  "factHistory": {"method":"GET","path":"{project}/facts/{fact_id}/history","places":["fact_id"]},
  "fact": {"method":"GET","path":"{project}/facts/{fact_id}","places":["fact_id"]},
  "createDataset": {"method":"PUT","path":"{project}/datasets/{dataset}","places":["dataset"],"fields":"body"},
  "getDataset": {"method":"GET","path":"{project}/datasets/{dataset}","places":["dataset"]},
  "sessions.get": {"method":"GET","path":"{project}/sessions/{session_id}","places":["session_id"]},
  "sessions.delete": {"method":"DELETE","path":"{project}/sessions/{session_id}","places":["session_id"],"once":true},
  "sessions.exists": {"method":"GET","path":"{project}/sessions/{session_id}/exists","places":["session_id"]},
  "sessions.addMessage": {"method":"POST","path":"{project}/sessions/{session_id}/messages","places":["session_id"],"fields":"body","once":true},
  "sessions.messages": {"method":"GET","path":"{project}/sessions/{session_id}/messages","places":["session_id"],"fields":"query","iterate":"iterateMessages"},
  "sessions.addMessages": {"method":"POST","path":"{project}/sessions/{session_id}/messages/batch","places":["session_id"],"fields":"body","once":true},
  "sessions.getMetadata": {"method":"GET","path":"{project}/sessions/{session_id}/metadata","places":["session_id"]},
  "sessions.updateMetadata": {"method":"PATCH","path":"{project}/sessions/{session_id}/metadata","places":["session_id"],"fields":"body","once":true},
  "sessions.deleteMetadata": {"method":"DELETE","path":"{project}/sessions/{session_id}/metadata","places":["session_id"],"fields":"query","once":true},
  "sessions.addEntry": {"method":"POST","path":"{project}/sessions/{session_id}/entries","places":["session_id"],"fields":"body","once":true},
  "sessions.entries": {"method":"GET","path":"{project}/sessions/{session_id}/entries","places":["session_id"],"fields":"query","iterate":"iterateEntries"},
  "sessions.rate": {"method":"PUT","path":"{project}/entries/{external_id}/rating","places":["external_id"],"fields":"body"},
  "sessions.addSessionFeedback": {"method":"POST","path":"{project}/sessions/{session_id}/feedback","places":["session_id"],"fields":"body","once":true},
  "sessions.feedbacks": {"method":"GET","path":"{project}/sessions/{session_id}/feedback","places":["session_id"],"fields":"query","iterate":"iterateFeedbacks"},
  "sessions.discardAlert": {"method":"DELETE","path":"{project}/alerts/{alert_id}","places":["alert_id"],"once":true},
  "connectors.get": {"method":"GET","path":"{project}/connectors/{connector_id}","places":["connector_id"]},
  "connectors.delete": {"method":"DELETE","path":"{project}/connectors/{connector_id}","places":["connector_id"],"once":true},
  "connectors.refresh": {"method":"POST","path":"{project}/connectors/{connector_id}/refresh","places":["connector_id"],"fields":"body","slow":true},
  "connectors.confirm": {"method":"POST","path":"{project}/connectors/{connector_id}/confirm","places":["connector_id"],"fields":"body","slow":true},
  "connectors.schema": {"method":"GET","path":"{project}/connectors/{connector_id}/schema","places":["connector_id"]},
  "executions.executeFromChat": {"method":"POST","path":"{project}/chat-messages/{chat_message_id}/execute","places":["chat_message_id"],"fields":"body","once":true,"slow":true},
  "executions.get": {"method":"GET","path":"{project}/executions/{execution_id}","places":["execution_id"]},
  "executions.delete": {"method":"DELETE","path":"{project}/executions/{execution_id}","places":["execution_id"],"once":true},
  "feedback.get": {"method":"GET","path":"{project}/feedback/{feedback_id}","places":["feedback_id"]},
  "feedback.update": {"method":"PATCH","path":"{project}/feedback/{feedback_id}","places":["feedback_id"],"fields":"body","once":true},
  "feedback.delete": {"method":"DELETE","path":"{project}/feedback/{feedback_id}","places":["feedback_id"],"once":true},
  "feedback.getFeedbackForMessage": {"method":"GET","path":"{project}/chat-messages/{chat_message_id}/feedback","places":["chat_message_id"],"fields":"query"},
  "chat.chatToSql": {"method":"POST","path":"{project}/chat-sessions/{chat_session_id}/chat-to-sql","places":["chat_session_id"],"fields":"body","once":true,"slow":true},
  "chat.chatToAnswer": {"method":"POST","path":"{project}/chat-sessions/{chat_session_id}/chat-to-answer","places":["chat_session_id"],"fields":"body","once":true,"slow":true},
  "chatSessions.get": {"method":"GET","path":"{project}/chat-sessions/{chat_session_id}","places":["chat_session_id"]},
  "chatSessions.delete": {"method":"DELETE","path":"{project}/chat-sessions/{chat_session_id}","places":["chat_session_id"],"once":true},
  "chatSessions.getQuestions": {"method":"GET","path":"{project}/chat-sessions/{chat_session_id}/questions","places":["chat_session_id"]},
  "goldenExamples.get": {"method":"GET","path":"{project}/golden-examples/{example_id}","places":["example_id"]},
  "goldenExamples.update": {"method":"PATCH","path":"{project}/golden-examples/{example_id}","places":["example_id"],"fields":"body","once":true},
  "goldenExamples.delete": {"method":"DELETE","path":"{project}/golden-examples/{example_id}","places":["example_id"],"once":true},
  "review.get": {"method":"GET","path":"{project}/review/{item_id}","places":["item_id"]},
  "review.assign": {"method":"POST","path":"{project}/review/{item_id}/assign","places":["item_id"],"fields":"body","once":true},
  "review.resolve": {"method":"POST","path":"{project}/review/{item_id}/resolve","places":["item_id"],"fields":"body","once":true},
  "review.dismiss": {"method":"POST","path":"{project}/review/{item_id}/dismiss","places":["item_id"],"fields":"body","once":true},
  "review.reopen": {"method":"POST","path":"{project}/review/{item_id}/reopen","places":["item_id"],"fields":"body","once":true},
  "review.fix": {"method":"POST","path":"{project}/review/{item_id}/fix","places":["item_id"],"fields":"body","once":true},
  "review.askAgain": {"method":"POST","path":"{project}/review/{item_id}/ask-again","places":["item_id"],"slow":true},
  "review.undo": {"method":"POST","path":"{project}/review/events/{event_id}/undo","places":["event_id"],"fields":"body"},
  "keys.revoke": {"method":"DELETE","path":"{project}/keys/{key_id}","places":["key_id"],"once":true},
  "jobs.get": {"method":"GET","path":"{project}/jobs/{job_id}","places":["job_id"]},
  "jobs.cancel": {"method":"POST","path":"{project}/jobs/{job_id}/cancel","places":["job_id"]},
  "jobs.retry": {"method":"POST","path":"{project}/jobs/{job_id}/retry","places":["job_id"],"once":true},
  "sessions.updateMessage": {"method":"PATCH","path":"{project}/sessions/{session_id}/messages/{message_id}","places":["session_id","message_id"],"fields":"body"},
  "sessions.deleteMessage": {"method":"DELETE","path":"{project}/sessions/{session_id}/messages/{message_id}","places":["session_id","message_id"],"once":true},
  "sessions.entry": {"method":"GET","path":"{project}/sessions/{session_id}/entries/{qa_id}","places":["session_id","qa_id"]},
  "sessions.addFeedback": {"method":"PUT","path":"{project}/sessions/{session_id}/entries/{qa_id}/feedback","places":["session_id","qa_id"],"fields":"body","missing":"entry"},
  "sessions.deleteFeedback": {"method":"DELETE","path":"{project}/sessions/{session_id}/entries/{qa_id}/feedback","places":["session_id","qa_id"],"fields":"query"},
  "server.healthz": {"method":"GET","path":"/healthz","places":[]},
  "server.readyz": {"method":"GET","path":"/readyz","places":[]},
  "server.metrics": {"method":"GET","path":"/metrics","places":[],"text":true},
  "server.audit": {"method":"GET","path":"/v1/audit","places":[],"fields":"query","iterate":"iterateAudit"},
  "server.jobs": {"method":"GET","path":"/v1/jobs","places":[]},
  "server.projects": {"method":"GET","path":"/v1/projects","places":[]},
};
