// Written by `npm run generate` from the server's description of its API. Edits here are overwritten.

import type { CallOptions, ChangeOptions, Extras, Operation } from "./operation.js";

/** A page of a list; `next_cursor` asks for the next one, and is null at the end. */
export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** One message in the outbox. */
export interface Alert {
  alert_id: string;
  channel: string;
  payload: Record<string, unknown>;
  created_at: string;
  attempts: number;
  next_at: string | null;
  delivered_at: string | null;
  error: string | null;
}

/** Something that was refused, or that an admin did. */
export interface AuditEntry {
  at: string;
  kind: "refusal" | "action";
  operation: string;
  project: string | null;
  caller: string | null;
  address: string | null;
  code: string | null;
  target: string | null;
  times: number;
}

/** What a bulk deletion did. */
export interface BulkDeletion {
  deleted_count: number;
  failed_ids: string[];
}

/** What the cache knows of one connector, and what it is asked and refuses. */
export interface CacheCoverage {
  connector_id: string;
  proven: ProvenKind[];
  proven_questions: number;
  proven_kinds: number;
  refused: RefusedKind[];
  missing: MissingExample[];
}

/** One decision of the cache. */
export interface CacheDecision {
  at: string;
  question: string;
  decision: "serve" | "rebind" | "refuse" | "nothing";
  gate: string;
  reason: string;
  similarity: number | null;
  candidate_id: string | null;
  execution_id: string | null;
}

/** What the cache has for a question. */
export interface CacheLookup {
  cache_hit: boolean;
  matches: CacheMatch[];
  candidates_checked: number;
  suggestion: CacheSuggestion | null;
}

/** A stored execution that is like what is asked, and whether it may be used. */
export interface CacheMatch {
  execution: Record<string, unknown>;
  similarity_score: number;
  has_feedback: boolean;
  feedback_is_positive: boolean | null;
  feedback_comment: string | null;
  decision: "serve" | "rebind" | "refuse";
  gate: string;
  reason: string;
  question: string;
  differences: string[];
  age_days: number;
  stale: boolean;
}

/** What the cache decided, and why. */
export interface CacheReport {
  total: number;
  reused: number;
  counts: DecisionCount[];
  newest: CacheDecision[];
}

/** What a question probably means, where that isn't certain: somebody has to confirm it. */
export interface CacheSuggestion {
  question: string;
  sql_query: string;
  proven_question: string;
  execution_id: string;
}

/** SQL for a question, and what it gave. */
export interface ChatAnswer {
  chat_message_id: string;
  chat_session_id: string;
  query: string;
  sql_query: string;
  origin: "query" | "served" | "rebound" | "written" | "suggested";
  explanation: string;
  derived_from: string | null;
  model: string | null;
  suggestion: CacheSuggestion | null;
  answer: string;
  execution_result: Execution | null;
}

export interface ChatChatToAnswerRequest {
  query: string;
  connector_id?: string | null;
  feedback_cutoff?: number;
  remarks?: string[];
}

export interface ChatChatToSqlRequest {
  query: string;
  connector_id?: string | null;
  feedback_cutoff?: number;
  remarks?: string[];
}

export interface ChatConfirmSuggestionRequest {
  user_query: string;
  execution_id: string;
  connector_id?: string | null;
  author?: string | null;
}

export interface ChatExecutionCacheLookupRequest {
  user_query: string;
  connector_id?: string | null;
  max_age_days?: number;
  similarity_threshold?: number;
  limit?: number;
  top_n?: number;
  only_positive_feedback?: boolean;
  reuse?: "sql" | "result";
}

/** A question that was asked in a chat session. */
export interface ChatQuestion {
  chat_message_id: string;
  question: string;
  sql_query: string | null;
  origin: "query" | "served" | "rebound" | "written" | "suggested" | null;
  created_at: string;
}

/** A conversation about data. */
export interface ChatSession {
  id: string;
  name: string | null;
  created_at: string;
  updated_at: string;
}

export interface ChatSessionsCreateRequest {
  name?: string | null;
}

/** SQL for a question. */
export interface ChatSql {
  chat_message_id: string;
  chat_session_id: string;
  query: string;
  sql_query: string;
  origin: "query" | "served" | "rebound" | "written" | "suggested";
  explanation: string;
  derived_from: string | null;
  model: string | null;
  suggestion: CacheSuggestion | null;
}

/** One line of `doctor`. */
export interface Check {
  name: string;
  ok: boolean;
  detail: string;
  repaired: boolean;
}

/** The chance that one variant is better than another. */
export interface Comparison {
  better: unknown;
  than: unknown;
  probability: number;
}

/** A database that executions run against; secrets are not shown. */
export interface Connector {
  connector_id: string;
  name: string;
  url: string;
  dialect: string;
  enabled: boolean;
  privileged: boolean;
  tables: number | null;
  fingerprint: string | null;
  schema_at: string | null;
  created_at: string;
}

export interface ConnectorsConfirmRequest {
  privileged?: boolean;
}

export interface ConnectorsCreateRequest {
  name: string;
  url: string;
  role?: string | null;
  privileged?: boolean;
}

/** The usefulness of one fact in one context. */
export interface ContextScore {
  query: string;
  queries: string[];
  score: number;
  signal_count: number;
  signal_breakdown: Partial<Record<"used" | "ignored" | "helpful" | "not_helpful", number>>;
  last_signal_at: string;
}

/** An active supersession. */
export interface Correction {
  event_id: string;
  fact_id: string;
  superseded_by: string;
  at: string;
  author: string | null;
}

/** How much of what was shown was rated. */
export interface Coverage {
  answers: Covered;
  executions: Covered;
  recalls: Covered;
}

/** How much of one kind of thing was rated. */
export interface Covered {
  kind: "answers" | "executions" | "recalls";
  shown: number;
  rated: number;
  share: number | null;
  low: number | null;
  high: number | null;
}

export interface CreateDatasetRequest {
  metadata?: Record<string, unknown> | null;
}

/** A named set of facts. */
export interface Dataset {
  name: string;
  metadata: Record<string, unknown>;
  facts: number;
  created_at: string;
}

/** How often the cache decided so, for this reason. */
export interface DecisionCount {
  decision: "serve" | "rebind" | "refuse" | "nothing";
  gate: string;
  count: number;
  share: number;
}

export interface DetectRequest {
  answer: string;
}

/** What an answer says of one fact that was shown. */
export interface Detection {
  fact_id: string;
  signal_type: "used" | "ignored" | null;
  confidence: number;
  reasons: string[];
}

/** What people said in some time, beside the time before it, in short. */
export interface Digest {
  project: string;
  since: string;
  until: string;
  now: Variant;
  before: Variant;
  themes: Theme[];
  notes: Note[];
  open_items: number;
  headline: string;
  text: string;
}

export interface DoctorRequest {
  repair?: boolean;
}

/** What one source says. Remembered, it replaces what that source said before. */
export interface Document {
  source: string;
  texts: string[];
  metadata?: (Record<string, unknown>)[] | null;
}

/** One question and answer of a session, with the active feedback. */
export interface Entry {
  qa_id: string;
  question: string;
  answer: string;
  context: string;
  time: string;
  feedback_text: string | null;
  feedback_score: number | null;
  recall_id: string | null;
  dataset: string | null;
  used: UsedFact[] | null;
  model: string | null;
  usage: Usage | null;
}

/** What was erased of a person, by which it can be proven: their name is not in it. */
export interface Erasure {
  author: string | null;
  event_id: string | null;
  events: number;
  feedback: number;
  notes: number;
  review: number;
  sessions: number;
  executions: number;
  questions: number;
  alerts: number;
  results: number;
  keys: number;
}

/** A mean and its 95% interval. */
export interface Estimate {
  value: number;
  low: number;
  high: number;
}

/** One ledger event behind a score. */
export interface EventRef {
  event_id: string;
  signal_type: "used" | "ignored" | "helpful" | "not_helpful";
  query: string;
  confidence: number;
  at: string;
  author: string | null;
}

/** One SQL statement that ran, with its result. */
export interface Execution {
  execution_id: string;
  connector_id: string;
  question: string | null;
  sql_query: string;
  parameters: Record<string, unknown>;
  result: QueryResult;
  execution_time_ms: number;
  origin: "query" | "served" | "rebound" | "written" | "suggested";
  derived_from: string | null;
  chat_message_id: string | null;
  created_at: string;
}

/** What somebody says of an execution, or of a message. */
export interface ExecutionFeedback {
  id: string;
  execution_id: string | null;
  chat_message_id: string | null;
  feedback: string | null;
  is_positive: boolean;
  author: string | null;
  author_trust: "verified" | "known" | "anonymous";
  created_at: string;
  updated_at: string;
}

export interface ExecutionsExecuteFromChatRequest {
  connector_id?: string | null;
}

export interface ExecutionsExecuteQueryRequest {
  sql_query: string;
  connector_id?: string | null;
  question?: string | null;
  parameters?: Record<string, unknown> | null;
  chat_message_id?: string | null;
}

/** Why a hit has its score: the parts, the evidence and the arithmetic. */
export interface Explanation {
  vector: number | null;
  words: number | null;
  neighbours: number | null;
  links: string[];
  matched_context: string | null;
  context_similarity: number | null;
  events: EventRef[];
  arithmetic: string[];
}

/** One column of an exported table. */
export interface ExportColumn {
  name: string;
  type: "text" | "integer" | "number" | "boolean" | "time" | "json";
  meaning: string;
}

/** One table that can be exported. */
export interface ExportTable {
  name: "feedback" | "signals" | "entries" | "sessions" | "messages" | "facts" | "recalls" | "executions" | "golden_examples" | "decisions" | "review_items" | "events";
  meaning: string;
  columns: ExportColumn[];
}

/** One fact as it is stored. */
export interface Fact {
  fact_id: string;
  text: string;
  dataset: string;
  source: string | null;
  metadata: Record<string, unknown>;
  created_at: string;
  expires_at: string | null;
}

/** How the score of one fact came to be, by the documented policy, and what it superseded. */
export interface FactHistory {
  fact_id: string;
  created_at: string;
  expires_at: string | null;
  points: ScorePoint[];
  score: number;
  superseded_by: Correction | null;
  supersedes: Correction | null;
}

/** A fact as `remember` reports it. */
export interface FactRef {
  fact_id: string;
  text: string;
  new: boolean;
}

/** All that signals say of one fact; scores are decayed to now. */
export interface FactStats {
  fact_id: string;
  text: string;
  dataset: string;
  score: number;
  signal_count: number;
  signal_breakdown: Partial<Record<"used" | "ignored" | "helpful" | "not_helpful", number>>;
  last_signal_at: string | null;
  contexts: ContextScore[];
}

/** One opinion about a session or an entry. */
export interface Feedback {
  feedback_id: string;
  session_id: string;
  target_type: "session" | "entry";
  target_id: string;
  rating: "up" | "down" | null;
  score: number | null;
  comment: string | null;
  author: string | null;
  author_trust: "verified" | "known" | "anonymous";
  created_at: string;
  extra: Record<string, unknown>;
}

export interface FeedbackBulkDeleteRequest {
  feedback_ids: string[];
}

export interface FeedbackCreateNegativeRequest {
  feedback?: string | null;
  execution_id?: string | null;
  chat_message_id?: string | null;
  author?: string | null;
}

export interface FeedbackCreatePositiveRequest {
  feedback_text?: string | null;
  execution_id?: string | null;
  chat_message_id?: string | null;
  author?: string | null;
}

export interface FeedbackCreateRequest {
  is_positive: boolean;
  feedback?: string | null;
  execution_id?: string | null;
  chat_message_id?: string | null;
  author?: string | null;
}

/** Feedbacks, the newest first, and how many there are in all. */
export interface FeedbackList {
  items: ExecutionFeedback[];
  total: number;
  skip: number;
  limit: number;
}

/** All active feedback, counted. */
export interface FeedbackMetrics {
  total: number;
  positive: number;
  negative: number;
  neutral: number;
  avg_comment_length: number;
}

/** What a browser is given to say what it thinks of some things, for a short time. */
export interface FeedbackToken {
  token: string;
  author: string;
  author_trust: "verified" | "known" | "anonymous";
  targets: Target[];
  expires_at: string;
}

export interface FeedbackUpdateRequest {
  feedback?: string | null;
  is_positive?: boolean;
}

/** A file that could not be remembered. */
export interface FileError {
  source: string;
  code: string;
  message: string;
}

export interface ForgetRequest {
  fact_ids?: string | string[] | null;
  source?: string | null;
  dataset?: string | null;
  author?: string | null;
}

/** What `forget` removed. */
export interface ForgetResult {
  facts: number;
  dataset: string;
  erased: Erasure | null;
}

/** A question with the SQL that answers it, by somebody's word. */
export interface GoldenExample {
  id: string;
  connector_id: string;
  question: string;
  sql_query: string;
  origin: "given" | "imported" | "promoted";
  execution_id: string | null;
  created_at: string;
  updated_at: string;
}

export interface GoldenExamplesCreateRequest {
  question: string;
  sql_query: string;
  connector_id?: string | null;
}

export interface GoldenExamplesImportExamplesRequest {
  examples: NewExample[];
  connector_id?: string | null;
}

export interface GoldenExamplesPromoteRequest {
  execution_id: string;
  question?: string | null;
}

export interface GoldenExamplesUpdateRequest {
  question?: string;
  sql_query?: string;
}

/** One recalled fact. */
export interface Hit {
  fact_id: string;
  text: string;
  score: number;
  relevance: number;
  usefulness: number;
  usefulness_source: "context" | "global" | "neutral";
  metadata: Record<string, unknown>;
  source: string | null;
  position: [number, number] | null;
  rank: number;
  explanation: Explanation | null;
}

export interface ImproveRequest {
  dataset?: string;
  session_ids?: string[] | null;
}

/** What `improve` changed; all zero when there was nothing new. */
export interface Improvement {
  dataset: string;
  entries: number;
  signals_added: number;
  signals_retracted: number;
  updated_facts: string[];
  link_signals_added: number;
  link_signals_retracted: number;
  learnt: LearntFact[];
  forgotten: string[];
  entities_added: number;
  anonymous_ratings: number;
  not_learnt: NotLearnt[];
}

/** Why one item of a batch was refused. */
export interface ItemError {
  index: number;
  code: string;
  message: string;
  fact_id: string | null;
}

/** Work that is done in the background: at least once, by one worker at a time. */
export interface Job {
  job_id: string;
  kind: "improve" | "reembed" | "maintain" | "index" | "digest" | "deliver";
  project: string | null;
  arguments: Record<string, unknown>;
  status: "waiting" | "running" | "done" | "failed" | "cancelled";
  attempts: number;
  done: number | null;
  total: number | null;
  error: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
}

export interface JobsImproveRequest {
  dataset?: string;
  session_ids?: string[] | null;
}

/** A key to a server; its secret is shown once, when it is made. */
export interface Key {
  key_id: string;
  name: string;
  project: string | null;
  scopes: ("read" | "write" | "feedback" | "admin")[];
  rate_limit: number | null;
  created_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
}

export interface KeysCreateRequest {
  name: string;
  scopes?: ("read" | "write" | "feedback" | "admin")[];
  rate_limit?: number | null;
}

export interface KeysCreateTokenRequest {
  targets: Target[];
  author?: string | null;
  subject?: string | null;
  expires_in?: number;
}

export interface KeysRotateSigningRequest {
  grace?: number;
}

/** A fact that `improve` made from a session. */
export interface LearntFact {
  fact_id: string;
  text: string;
  session_id: string;
  qa_id: string;
  learnt_from: "answer" | "feedback";
  corrects: string | null;
}

/** One message of a session. */
export interface Message {
  message_id: string;
  role: string;
  content: string;
  at: string;
}

/** A question whose proof would answer others, too. */
export interface MissingExample {
  question: string;
  asked: number;
  questions: number;
  suggestion: CacheSuggestion | null;
}

/** A fact that helps in one context and hurts in another. */
export interface MixedFact {
  fact_id: string;
  text: string;
  score: number;
  helps: ContextScore;
  hurts: ContextScore;
}

/** A question, and the SQL that answers it. */
export interface NewExample {
  question: string;
  sql_query: string;
}

/** A key that was just made, with its secret. */
export interface NewKey {
  key_id: string;
  name: string;
  project: string | null;
  scopes: ("read" | "write" | "feedback" | "admin")[];
  rate_limit: number | null;
  created_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
  api_key: string;
}

/** A message that is to be added. */
export interface NewMessage {
  role: string;
  content: string;
  at?: string | null;
}

/** Feedback that would have taught a fact, and did not. */
export interface NotLearnt {
  feedback_id: string;
  session_id: string;
  qa_id: string;
  learnt_from: "answer" | "feedback";
  reason: "anonymous_author" | "too_few_authors" | "corrects_nothing";
  detail: string;
}

/** Something that changed, and is not luck. */
export interface Note {
  text: string;
  about: string;
  value: unknown;
  since: string;
  ratio: number | null;
  worse: boolean;
  arithmetic: string[];
}

/** Proven questions whose SQL is the same but for its values. */
export interface ProvenKind {
  sql_template: string;
  questions: number;
  example: string;
}

export type QueryResult = Record<string, unknown>;

/** A fact in a list of the most or least useful. */
export interface RankedFact {
  fact_id: string;
  text: string;
  score: number;
  signal_count: number;
}

/** The answer to `recall`: hits, best first, under a receipt. */
export interface Recall {
  recall_id: string;
  query: string;
  dataset: string;
  mode: "hybrid" | "semantic" | "lexical" | "graph";
  policy: "documented" | "adaptive";
  hits: Hit[];
  session_id: string | null;
  qa_id: string | null;
  answer: string | null;
  receipt: boolean;
}

export interface RecallRequest {
  query: string;
  dataset?: string;
  top_k?: number;
  mode?: "hybrid" | "semantic" | "lexical" | "graph";
  where?: Record<string, unknown> | null;
  boost_by_usefulness?: boolean | number | null;
  usefulness_weight?: number;
  feedback_influence?: number | null;
  min_usefulness?: number;
  policy?: "documented" | "adaptive" | null;
  exploration?: number;
  seed?: number | null;
  explain?: boolean;
  session_id?: string | null;
  answer?: boolean;
}

/** What was shown by one recall. */
export interface Receipt {
  recall_id: string;
  dataset: string;
  query: string;
  mode: "hybrid" | "semantic" | "lexical" | "graph";
  policy: "documented" | "adaptive";
  usefulness_weight: number;
  at: string;
  shown: Shown[];
}

/** One signal that was taken, under the event that can be retracted. */
export interface RecordedSignal {
  event_id: string;
  fact_id: string;
  signal_type: "used" | "ignored" | "helpful" | "not_helpful";
}

/** Questions that one gate refuses. */
export interface RefusedKind {
  gate: string;
  asked: number;
  questions: number;
  examples: string[];
}

export interface RememberRequest {
  texts: string | Document | (string | Document)[];
  dataset?: string;
  metadata?: Record<string, unknown> | (Record<string, unknown>)[] | null;
  source?: string | null;
  expires_at?: string | null;
  self_improvement?: boolean;
}

/** What `remember` stored, document by document in the order given. */
export interface RememberResult {
  dataset: string;
  facts: FactRef[];
  added: number;
  known: number;
  removed: number;
  errors: FileError[];
}

/** The weight that a policy should be given, by what was replayed. */
export interface ReplayAdvice {
  policy: "documented" | "adaptive";
  usefulness_weight: number | null;
  reason: string;
}

/** What one way to order the facts that were shown is worth, by the ratings they got. */
export interface ReplayArm {
  policy: "documented" | "adaptive" | null;
  usefulness_weight: number | null;
  mrr: Estimate;
  ndcg: Estimate;
  mrr_change: Estimate;
  ndcg_change: Estimate;
  queries_better: number;
  queries_worse: number;
  worse: WorseQuery[];
}

/** What other policies and weights would have made of the recalls that people rated. */
export interface ReplayReport {
  dataset: string;
  rated: number;
  replayed: number;
  queries: number;
  effective_sample_size: number;
  seed: number;
  logged: ReplayArm | null;
  none: ReplayArm | null;
  arms: ReplayArm[];
  advice: ReplayAdvice[];
}

export interface ReplayRequest {
  dataset?: string;
  policies?: ("documented" | "adaptive")[] | null;
  weights?: number[] | null;
  since?: string | null;
  seed?: number;
}

export interface RetractRequest {
  author?: string | null;
}

/** What `retract` undid. */
export interface Retraction {
  event_id: string;
  retracted: string;
  updated_facts: string[];
}

export interface ReviewAssignRequest {
  assignee: string | null;
  author?: string | null;
}

/** An item with all that is needed to fix it. */
export interface ReviewCase {
  item: ReviewItem;
  answer: string | null;
  sql_query: string | null;
  execution_id: string | null;
  recall_id: string | null;
  evidence: ReviewEvidence[];
  opinions: ReviewOpinion[];
  history: ReviewEvent[];
  fixes: ("supersede" | "retract" | "teach" | "block" | "promote" | "add_example")[];
}

/** The same question, asked again. */
export interface ReviewComparison {
  question: string;
  before: string | null;
  after: string | null;
  reason: string | null;
  evidence_before: ReviewEvidence[];
  evidence_after: Hit[];
  changed: boolean;
}

export interface ReviewDismissRequest {
  note?: string | null;
  author?: string | null;
}

/** Something that was done about an item. */
export interface ReviewEvent {
  event_id: string;
  action: "assign" | "resolve" | "dismiss" | "reopen" | "supersede" | "retract" | "teach" | "block" | "promote" | "add_example";
  author: string | null;
  at: string;
  note: string | null;
  details: Record<string, unknown>;
  undone: boolean;
}

/** A fact behind the answer, as it was shown. */
export interface ReviewEvidence {
  fact_id: string;
  text: string | null;
  rank: number | null;
  score: number | null;
  relevance: number | null;
  usefulness: number | null;
  share: number | null;
  superseded: boolean;
}

export interface ReviewFixRequest {
  action: "supersede" | "retract" | "teach" | "block" | "promote" | "add_example";
  fact_id?: string | null;
  text?: string | null;
  event_id?: string | null;
  execution_id?: string | null;
  question?: string | null;
  sql_query?: string | null;
  connector_id?: string | null;
  note?: string | null;
  author?: string | null;
}

/** Opinions that say the same, as one piece of work. */
export interface ReviewItem {
  item_id: string;
  kind: "negative" | "contradictory";
  target_type: "session" | "entry" | "message" | "execution" | "fact";
  question: string | null;
  dataset: string | null;
  status: "open" | "resolved" | "dismissed";
  assignee: string | null;
  opinions: number;
  against: number;
  comment: string | null;
  opened_at: string;
  last_at: string;
  changed_at: string;
}

/** One opinion of an item. */
export interface ReviewOpinion {
  event_id: string;
  target_type: "session" | "entry" | "message" | "execution" | "fact";
  target_id: string;
  session_id: string | null;
  positive: boolean;
  score: number | null;
  comment: string | null;
  author: string | null;
  author_trust: "verified" | "known" | "anonymous";
  at: string;
}

export interface ReviewReopenRequest {
  note?: string | null;
  author?: string | null;
}

export interface ReviewResolveRequest {
  note?: string | null;
  author?: string | null;
}

export interface ReviewUndoRequest {
  author?: string | null;
}

/** Satisfaction by a value: of the sessions' metadata, or of the opinions themselves. */
export interface Satisfaction {
  by: string;
  variants: Variant[];
  comparisons: Comparison[];
  stopping: Stopping | null;
}

/** The score of a fact after one signal. */
export interface ScorePoint {
  at: string;
  score: number;
  event_id: string;
  signal_type: "used" | "ignored" | "helpful" | "not_helpful";
  query: string;
  confidence: number;
  author: string | null;
}

/** One conversation. */
export interface Session {
  session_id: string;
  metadata: Record<string, unknown>;
  created_at: string;
  updated_at: string;
}

/** What went with a session. */
export interface SessionDeletion {
  session_id: string;
  messages: number;
  entries: number;
  feedbacks: number;
  forgotten_facts: number;
}

export interface SessionsAddEntryRequest {
  question: string;
  answer: string;
  context?: string | null;
  recall_id?: string | null;
  used?: string[] | Record<string, number> | null;
}

export interface SessionsAddFeedbackRequest {
  feedback_text?: string | null;
  feedback_score?: number | null;
  author?: string | null;
}

export interface SessionsAddMessageRequest {
  role: string;
  content: string;
  at?: string | null;
}

export interface SessionsAddMessagesRequest {
  messages: NewMessage[];
}

export interface SessionsAddSessionFeedbackRequest {
  feedback: Record<string, unknown>;
  author?: string | null;
}

export interface SessionsCreateRequest {
  session_id?: string | null;
  metadata?: Record<string, unknown> | null;
}

export interface SessionsUpdateMetadataRequest {
  metadata: Record<string, unknown>;
}

export interface SetPolicyRequest {
  policy: "documented" | "adaptive" | null;
  dataset?: string | null;
}

/** One line of a receipt. */
export interface Shown {
  fact_id: string;
  rank: number;
  score: number;
  relevance: number;
  usefulness: number;
  usefulness_source: "context" | "global" | "neutral";
  propensity: number;
  links: string[];
}

/** One opinion about one fact for one query. */
export interface Signal {
  fact_id: string;
  signal_type: "used" | "ignored" | "helpful" | "not_helpful";
  query: string;
  confidence?: number;
  context?: string | null;
  at?: string | null;
  author?: string | null;
  idempotency_key?: string | null;
}

export interface SignalRecallRequest {
  used?: string[];
  helpful?: string[];
  not_helpful?: string[];
  answer?: string | null;
  confidence?: number;
  author?: string | null;
}

export interface SignalRequest {
  signals: Signal[];
  dataset?: string | null;
}

/** What a call to `signal` or `signal_recall` did. */
export interface SignalResult {
  processed: number;
  updated_facts: string[];
  errors: ItemError[];
  event_ids: string[];
  signals: RecordedSignal[];
}

/** What `rotate_signing` did. */
export interface SigningRotation {
  rotated_at: string;
  former_good_until: string;
}

/** Whether a comparison has been going on for long enough. */
export interface Stopping {
  decided: boolean;
  best: unknown;
  expected_loss: number | null;
  needed: number | null;
  reason: string;
}

export interface SupersedeRequest {
  text?: string | null;
  by?: string | null;
  author?: string | null;
}

/** What `supersede` did. */
export interface Supersession {
  event_id: string;
  fact_id: string;
  superseded_by: string;
}

/** Something that feedback can be about: a session, one of its answers, an execution, a message or a recall. */
export interface Target {
  session_id?: string | null;
  qa_id?: string | null;
  execution_id?: string | null;
  chat_message_id?: string | null;
  recall_id?: string | null;
}

/** Negative comments that are about the same. */
export interface Theme {
  name: string;
  comments: number;
  examples: string[];
  feedback_ids: string[];
  first_at: string;
  last_at: string;
}

/** What negative comments are about. */
export interface Themes {
  comments: number;
  themes: Theme[];
  other: number;
}

/** Satisfaction over time. */
export interface Trend {
  over: "day" | "week";
  by: string | null;
  lines: TrendLine[];
  total: Variant;
}

/** The points of one value, the oldest first; days without opinions are among them. */
export interface TrendLine {
  value: unknown;
  points: TrendPoint[];
}

/** The opinions of one day or week. */
export interface TrendPoint {
  start: string;
  up: number;
  down: number;
  neutral: number;
  satisfaction: number | null;
  low: number | null;
  high: number | null;
  mean_score: number | null;
}

/** What a language model counted; None where it didn't say. */
export interface Usage {
  prompt_tokens: number | null;
  completion_tokens: number | null;
}

/** A fact that an answer was made from. */
export interface UsedFact {
  fact_id: string;
  share: number;
  links: string[];
}

/** How useful the facts of a dataset are; scores are decayed to now. */
export interface UsefulnessReport {
  dataset: string;
  total_facts: number;
  facts_with_signals: number;
  total_signals: number;
  average_score: number | null;
  distribution: Record<string, number>;
  most_useful: RankedFact[];
  least_useful: RankedFact[];
  mixed: MixedFact[];
}

/** The signals of one dataset; scores are decayed to now. */
export interface UsefulnessStats {
  dataset: string;
  total_facts: number;
  facts_with_signals: number;
  total_signals: number;
  signal_breakdown: Partial<Record<"used" | "ignored" | "helpful" | "not_helpful", number>>;
  average_score: number;
  distribution: Record<string, number>;
  most_useful: RankedFact[];
  least_useful: RankedFact[];
  queries: number;
}

/** The opinions under one value. */
export interface Variant {
  value: unknown;
  sessions: number | null;
  up: number;
  down: number;
  neutral: number;
  satisfaction: number | null;
  low: number | null;
  high: number | null;
  mean_score: number | null;
  probability_best: number | null;
}

/** A query whose helpful fact another order would put lower. */
export interface WorseQuery {
  query: string;
  receipts: number;
  change: number;
  recall_id: string;
  old_rank: number;
  new_rank: number;
}

/** What is wrong, and what to do (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** Stable: programs may compare it. */
  code: string;
  field: string | null;
  /** What was given, if it can be shown. */
  value: unknown;
  remedy: string | null;
  request_id: string;
}

export interface FactsRequest {
  dataset?: string;
  source?: string;
  cursor?: string;
  limit?: number;
  newest_first?: boolean;
}

export interface UsefulnessStatsRequest {
  dataset?: string;
}

export interface SessionsListRequest {
  where?: Record<string, unknown>;
  cursor?: string;
  limit?: number;
}

export interface SessionsMessagesRequest {
  cursor?: string;
  limit?: number;
  newest_first?: boolean;
}

export interface SessionsDeleteMetadataRequest {
  keys: string[];
}

export interface SessionsEntriesRequest {
  cursor?: string;
  limit?: number;
  newest_first?: boolean;
}

export interface SessionsDeleteFeedbackRequest {
  author?: string;
}

export interface SessionsFeedbacksRequest {
  cursor?: string;
  limit?: number;
  newest_first?: boolean;
}

export interface SessionsAlertsRequest {
  pending?: boolean;
  cursor?: string;
  limit?: number;
}

export interface InsightSatisfactionRequest {
  by: string;
  since?: string;
  until?: string;
  dataset?: string;
  target_type?: "session" | "entry" | "message" | "execution" | "fact";
}

export interface InsightTrendRequest {
  over?: "day" | "week";
  by?: string;
  since?: string;
  until?: string;
  dataset?: string;
  target_type?: "session" | "entry" | "message" | "execution" | "fact";
}

export interface InsightCoverageRequest {
  since?: string;
  until?: string;
  dataset?: string;
}

export interface InsightUsefulnessRequest {
  dataset?: string;
}

export interface InsightCacheRequest {
  since?: string;
  until?: string;
  limit?: number;
}

export interface InsightThemesRequest {
  since?: string;
  until?: string;
  dataset?: string;
}

export interface InsightNotesRequest {
  since?: string;
  until?: string;
  dataset?: string;
  by?: string;
}

export interface InsightDigestRequest {
  since?: string;
  until?: string;
}

export interface InsightRowsRequest {
  table: "feedback" | "signals" | "entries" | "sessions" | "messages" | "facts" | "recalls" | "executions" | "golden_examples" | "decisions" | "review_items" | "events";
  since?: string;
  until?: string;
  dataset?: string;
  cursor?: string;
  limit?: number;
}

export interface ExecutionsListRequest {
  connector_id?: string;
  cursor?: string;
  limit?: number;
}

export interface FeedbackListRequest {
  skip?: number;
  limit?: number;
  search?: string;
}

export interface FeedbackListPositiveRequest {
  skip?: number;
  limit?: number;
}

export interface FeedbackListNegativeRequest {
  skip?: number;
  limit?: number;
}

export interface FeedbackGetFeedbackForMessageRequest {
  skip?: number;
  limit?: number;
}

export interface ChatExecutionCacheCoverageRequest {
  connector_id?: string;
  max_age_days?: number;
  limit?: number;
}

export interface ChatSessionsListRequest {
  cursor?: string;
  limit?: number;
}

export interface GoldenExamplesListRequest {
  connector_id?: string;
  skip?: number;
  limit?: number;
}

export interface ReviewListRequest {
  status?: "open" | "resolved" | "dismissed";
  assignee?: string;
  dataset?: string;
  target_type?: "session" | "entry" | "message" | "execution" | "fact";
  cursor?: string;
  limit?: number;
}

export interface AuditRequest {
  kind?: "refusal" | "action";
  since?: string;
  cursor?: string;
  limit?: number;
}

export interface JobsListRequest {
  status?: "waiting" | "running" | "done" | "failed" | "cancelled";
  kind?: "improve" | "reembed" | "maintain" | "index" | "digest" | "deliver";
  cursor?: string;
  limit?: number;
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
   * One session.
   *
   * Needs the scope `read`.
   */
  get(session_id: string, options?: CallOptions): Promise<Session>;
  /**
   * Removes a session with its messages, entries and feedback, and all that was learnt from it.
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
   * Clears the rating and the text of an answer, or those of one author; False if there is no such entry.
   *
   * Needs the scope `feedback`.
   */
  deleteFeedback(session_id: string, qa_id: string, fields?: SessionsDeleteFeedbackRequest, options?: ChangeOptions): Promise<boolean>;
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
   * Gives up an alert that can't be delivered.
   *
   * Needs the scope `admin`.
   */
  discardAlert(alert_id: string, options?: ChangeOptions): Promise<Alert>;
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
   * How useful the facts of a dataset are: the distribution, the most and the least useful ones, and those that help in one context and hurt in another.
   *
   * Needs the scope `read`.
   */
  usefulness(fields?: InsightUsefulnessRequest, options?: CallOptions): Promise<UsefulnessReport>;
  /**
   * What the cache of executions decided, by reason, and the newest decisions.
   *
   * Needs the scope `read`.
   */
  cache(fields?: InsightCacheRequest, options?: CallOptions): Promise<CacheReport>;
  /**
   * What negative comments are about: those that mean the same, under their own words. No language model is needed. The newest 500 are read.
   *
   * Needs the scope `read`.
   */
  themes(fields?: InsightThemesRequest, options?: CallOptions): Promise<Themes>;
  /**
   * What changed in the last four weeks, or since then, and is not luck, with the arithmetic.
   *
   * Down-votes are looked at in all, by dataset, by model, by what they are about, by the themes of comments, and by
   * keys of the sessions' metadata: those that have up to 20 values (the five with the fewest, because whatever is
   * looked at makes a change harder to distinguish from chance), and the one that `by` names.
   *
   * Needs the scope `read`.
   */
  notes(fields?: InsightNotesRequest, options?: CallOptions): Promise<Note[]>;
  /**
   * What people said in the last seven days, or in this time, beside the time before it, in short.
   *
   * Needs the scope `read`.
   */
  digest(fields?: InsightDigestRequest, options?: CallOptions): Promise<Digest>;
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
   * What can be exported: each table with its columns, their types and what they mean.
   *
   * Needs the scope `read`.
   */
  dictionary(options?: CallOptions): Promise<ExportTable[]>;
}

/** Databases that questions are asked of. */
export interface ConnectorsMethods {
  /**
   * Adds a database by its SQLAlchemy URL and reads its schema; nothing is kept if that fails.
   *
   * Secrets in the URL are references such as `${DB_PASSWORD}`, or are encrypted with HEEDFUL_SECRET_KEY. `role` is
   * the role that PostgreSQL runs queries as. Its login is refused if it may do more than read; `privileged` accepts
   * it. On a server, where it may lead, which variables it may refer to and what is privileged is for the operator
   * to say.
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
   * Reads the schema again; what was proven for another schema is no longer used.
   *
   * Needs the scope `admin`.
   */
  refresh(connector_id: string, options?: ChangeOptions): Promise<Connector>;
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
   * Runs the SQL that a message of a chat has.
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
   * What is said of one message.
   *
   * Needs the scope `read`.
   */
  getFeedbackForMessage(chat_message_id: string, fields?: FeedbackGetFeedbackForMessageRequest, options?: CallOptions): Promise<FeedbackList>;
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
}

/** Questions of data. */
export interface ChatMethods {
  /**
   * Looks for executions that answer a question, and says of each whether it may be used, and why.
   *
   * Similarity finds candidates; it never decides. The first match that may be used is run now; with
   * `reuse="result"`, its stored result is taken instead, as old as it is.
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
   * Begins a conversation.
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
   * What was asked, oldest first, with the SQL it got.
   *
   * Needs the scope `read`.
   */
  getQuestions(chat_session_id: string, options?: CallOptions): Promise<ChatQuestion[]>;
}

/** Questions with the SQL that answers them. */
export interface GoldenExamplesMethods {
  /**
   * Adds an example; one for the same question on the same connector is a `Conflict`.
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
   * Makes an example of an execution that people say was right, and nobody that it was wrong.
   *
   * Needs the scope `write`.
   */
  promote(fields: GoldenExamplesPromoteRequest, options?: ChangeOptions): Promise<GoldenExample>;
  /**
   * Adds examples, mappings with `question` and `sql_query`, all or none.
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
   * Changes the question, the SQL, or both.
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
   * Needs the scope `feedback`.
   */
  assign(item_id: string, fields: ReviewAssignRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewItem>;
  /**
   * Says that an item is fixed. A negative opinion that is given afterwards opens it again.
   *
   * Of an item that you resolved before, another note is kept beside the first.
   *
   * Needs the scope `feedback`.
   */
  resolve(item_id: string, fields?: ReviewResolveRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewItem>;
  /**
   * Says that there is nothing to fix, even if others complain again.
   *
   * Needs the scope `feedback`.
   */
  dismiss(item_id: string, fields?: ReviewDismissRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewItem>;
  /**
   * Says that an item is work to do after all.
   *
   * Needs the scope `feedback`.
   */
  reopen(item_id: string, fields?: ReviewReopenRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewItem>;
  /**
   * Does something about an item; `undo` reverts it.
   *
   * `supersede` replaces the fact `fact_id` with `text`. `retract` retracts the opinion `event_id`. `teach`
   * makes a fact of the correction in it, or of `text`, since a visitor's word alone teaches nothing. `block`
   * says that the execution `execution_id` is wrong, with `note` as the reason. `promote` makes a golden example of
   * it, of its own `question` or another; if nobody says that it is right, the reviewer does. `add_example` adds the
   * golden example `sql_query`, for the item's question and connector or for others. The item stays open until it is
   * resolved.
   *
   * Needs the scope `write`.
   */
  fix(item_id: string, fields: ReviewFixRequest, options?: ChangeOptions & Pick<Extras, "ifMatch">): Promise<ReviewEvent>;
  /**
   * Asks an item's question again, and compares what is answered now with what was disliked. Nothing is kept.
   *
   * Of an execution, it is what the cache would run, without running it.
   *
   * Needs the scope `read`.
   */
  askAgain(item_id: string, options?: ChangeOptions): Promise<ReviewComparison>;
  /**
   * Undoes an action on an item with everything it did. Doing it again changes nothing.
   *
   * Needs the scope `write`.
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
  /**
   * Signs a token with which a browser may rate the things named, for `expires_in` seconds, and nothing else.
   *
   * What it says is said by `author`, somebody whom you know. Without one it is an anonymous visitor's opinion: it
   * is counted and reviewed, but teaches no fact, moves no rank and blocks no SQL. `subject` tells such visitors
   * apart, by the id of their visit for example, of which a hash is kept; those without one have one vote together.
   *
   * Needs the scope `feedback`.
   */
  createToken(fields: KeysCreateTokenRequest, options?: ChangeOptions): Promise<FeedbackToken>;
}

/** Work in the background. */
export interface JobsMethods {
  /**
   * Jobs, the newest first. With the kind `deliver`, the alerts of the outbox, as jobs.
   *
   * Needs the scope `read`.
   */
  list(fields?: JobsListRequest, options?: CallOptions): Promise<Page<Job>>;
  /** All items of `list`, page by page as they are needed; `limit` is the size of a page. */
  iterate(fields?: JobsListRequest, options?: CallOptions): AsyncGenerator<Job, void>;
  /**
   * Has `improve` run in the background; if a job waits to do the same, that one is returned.
   *
   * Needs the scope `write`.
   */
  improve(fields?: JobsImproveRequest, options?: ChangeOptions): Promise<Job>;
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

/** Liveness, readiness, metrics, projects and jobs of the server. */
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
   * Needs the scope `read`, and `write` with `session_id`.
   */
  recall(fields: RecallRequest, options?: ChangeOptions & Pick<Extras, "onToken">): Promise<Recall>;
  /**
   * Stores facts: a text, many texts, or files and folders given as `Path`; a `Document` is one that was read elsewhere.
   *
   * Long texts are split. A text with the same source and metadata as one that is there is not stored twice. A
   * file replaces what it said when it was remembered before. Files that can't be read are in `errors`.
   * From `expires_at` on, a time with a zone, they are not recalled. A fact that is there already takes this end, or
   * has none any more. With `self_improvement`, `improve` runs in the background afterwards.
   *
   * Needs the scope `write`.
   */
  remember(fields: RememberRequest, options?: ChangeOptions & Pick<Extras, "progress">): Promise<RememberResult>;
  /**
   * The facts of a dataset, or of one source, in the order in which they were stored.
   *
   * Needs the scope `read`.
   */
  facts(fields?: FactsRequest, options?: CallOptions): Promise<Page<Fact>>;
  /** All items of `facts`, page by page as they are needed; `limit` is the size of a page. */
  iterateFacts(fields?: FactsRequest, options?: CallOptions): AsyncGenerator<Fact, void>;
  /**
   * Turns the feedback of sessions (of all, if none are named) into better recall.
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
   * Facts that are not there, or not in the `dataset` if one is given, are listed in `errors`; the others are
   * applied. A call that is sent again with its
   * `idempotency_key` counts once and returns the first result.
   *
   * Needs the scope `feedback`.
   */
  signal(fields: SignalRequest, options?: ChangeOptions): Promise<SignalResult>;
  /**
   * Says how useful the facts of one recall were; those shown and never named are `ignored`.
   *
   * With the `answer` that was made from them, those not named are what `detect` says of them, or nothing.
   * Facts are named by id, or by their hits. It may come days later. Saying the same of a fact again counts once,
   * and a fact that is named later is no longer `ignored`.
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
   * What one recall showed: facts, ranks and scores.
   *
   * Needs the scope `read`.
   */
  receipt(recall_id: string, options?: CallOptions): Promise<Receipt>;
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
   * Chooses the rule for recalls of a dataset, or of the whole project; None takes the choice back.
   *
   * Needs the scope `write`.
   */
  setPolicy(fields: SetPolicyRequest, options?: ChangeOptions): Promise<void>;
  /**
   * Removes facts, or all facts of a source, or a whole dataset, with everything derived from them.
   *
   * Or erases the `author` of exactly this name from the project: a pseudonym takes the place of the name, their
   * words go, and every score stays what it is. Doing it again changes nothing.
   *
   * Needs the scope `write`, and `admin` with `author`.
   */
  forget(fields?: ForgetRequest, options?: ChangeOptions): Promise<ForgetResult>;
  /**
   * One fact: its text, its metadata, and its position.
   *
   * Needs the scope `read`.
   */
  fact(fact_id: string, options?: CallOptions): Promise<Fact>;
  /**
   * The usefulness of one fact: over all, by context, and the signals behind it.
   *
   * Needs the scope `read`.
   */
  factStats(fact_id: string, options?: CallOptions): Promise<FactStats>;
  /**
   * How the score of one fact came to be, signal by signal, and what it superseded or was superseded by.
   *
   * Needs the scope `read`.
   */
  factHistory(fact_id: string, options?: CallOptions): Promise<FactHistory>;
  /**
   * The usefulness of a dataset: totals, distribution, and the facts at both ends.
   *
   * Needs the scope `read`.
   */
  usefulnessStats(fields?: UsefulnessStatsRequest, options?: CallOptions): Promise<UsefulnessStats>;
  /**
   * What other policies and weights would have made of the recalls that people rated.
   *
   * The facts that each recall showed are ordered again by the opinions recorded before it, and judged by its own
   * `helpful` and `not_helpful` ratings. Both policies and the weights 0.1 to 0.9 are tried if none are given.
   * Nothing is changed.
   *
   * Needs the scope `read`.
   */
  replay(fields?: ReplayRequest, options?: ChangeOptions): Promise<ReplayReport>;
  /**
   * The names of the project's datasets that have facts or were made with `create_dataset`, oldest first.
   *
   * Needs the scope `read`.
   */
  datasets(options?: CallOptions): Promise<string[]>;
  /**
   * One dataset: its metadata, and how many facts it has.
   *
   * Needs the scope `read`.
   */
  getDataset(dataset: string, options?: CallOptions): Promise<Dataset>;
  /**
   * Makes a dataset before it has facts. One that is there stays as it is, with `metadata` merged into it.
   *
   * Needs the scope `write`.
   */
  createDataset(dataset: string, fields?: CreateDatasetRequest, options?: ChangeOptions): Promise<Dataset>;
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
}

/** How each method is called over the wire. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "recall": {"method":"POST","path":"{project}/recall","places":[],"fields":"body","slow":true,"callbacks":{"on_token":"onToken"}},
  "remember": {"method":"POST","path":"{project}/facts","places":[],"fields":"body","slow":true,"callbacks":{"progress":"progress"}},
  "facts": {"method":"GET","path":"{project}/facts","places":[],"fields":"query","iterate":"iterateFacts"},
  "improve": {"method":"POST","path":"{project}/improve","places":[],"fields":"body","slow":true},
  "signal": {"method":"POST","path":"{project}/signals","places":[],"fields":"body","once":true},
  "signalRecall": {"method":"POST","path":"{project}/recalls/{recall_id}/signals","places":["recall_id"],"fields":"body","once":true},
  "detect": {"method":"POST","path":"{project}/recalls/{recall_id}/detect","places":["recall_id"],"fields":"body"},
  "receipt": {"method":"GET","path":"{project}/recalls/{recall_id}","places":["recall_id"]},
  "retract": {"method":"POST","path":"{project}/events/{event_id}/retract","places":["event_id"],"fields":"body"},
  "supersede": {"method":"POST","path":"{project}/facts/{fact_id}/supersede","places":["fact_id"],"fields":"body","once":true},
  "setPolicy": {"method":"PUT","path":"{project}/policy","places":[],"fields":"body"},
  "forget": {"method":"POST","path":"{project}/forget","places":[],"fields":"body","once":true},
  "fact": {"method":"GET","path":"{project}/facts/{fact_id}","places":["fact_id"]},
  "factStats": {"method":"GET","path":"{project}/facts/{fact_id}/stats","places":["fact_id"]},
  "factHistory": {"method":"GET","path":"{project}/facts/{fact_id}/history","places":["fact_id"]},
  "usefulnessStats": {"method":"GET","path":"{project}/stats/usefulness","places":[],"fields":"query"},
  "replay": {"method":"POST","path":"{project}/replay","places":[],"fields":"body","slow":true},
  "datasets": {"method":"GET","path":"{project}/datasets","places":[]},
  "getDataset": {"method":"GET","path":"{project}/datasets/{dataset}","places":["dataset"]},
  "createDataset": {"method":"PUT","path":"{project}/datasets/{dataset}","places":["dataset"],"fields":"body"},
  "doctor": {"method":"POST","path":"{project}/doctor","places":[],"fields":"body","slow":true},
  "sessions.create": {"method":"POST","path":"{project}/sessions","places":[],"fields":"body","once":true},
  "sessions.list": {"method":"GET","path":"{project}/sessions","places":[],"fields":"query","iterate":"iterate"},
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
  "sessions.entry": {"method":"GET","path":"{project}/sessions/{session_id}/entries/{qa_id}","places":["session_id","qa_id"]},
  "sessions.addFeedback": {"method":"PUT","path":"{project}/sessions/{session_id}/entries/{qa_id}/feedback","places":["session_id","qa_id"],"fields":"body","missing":"entry"},
  "sessions.deleteFeedback": {"method":"DELETE","path":"{project}/sessions/{session_id}/entries/{qa_id}/feedback","places":["session_id","qa_id"],"fields":"query","missing":"entry"},
  "sessions.addSessionFeedback": {"method":"POST","path":"{project}/sessions/{session_id}/feedback","places":["session_id"],"fields":"body","once":true},
  "sessions.feedbacks": {"method":"GET","path":"{project}/sessions/{session_id}/feedback","places":["session_id"],"fields":"query","iterate":"iterateFeedbacks"},
  "sessions.feedbackMetrics": {"method":"GET","path":"{project}/metrics/feedback","places":[]},
  "sessions.alerts": {"method":"GET","path":"{project}/alerts","places":[],"fields":"query","iterate":"iterateAlerts"},
  "sessions.deliverAlerts": {"method":"POST","path":"{project}/alerts/deliver","places":[],"slow":true},
  "sessions.discardAlert": {"method":"DELETE","path":"{project}/alerts/{alert_id}","places":["alert_id"],"once":true},
  "insight.satisfaction": {"method":"GET","path":"{project}/insight/satisfaction","places":[],"fields":"query"},
  "insight.trend": {"method":"GET","path":"{project}/insight/trend","places":[],"fields":"query"},
  "insight.coverage": {"method":"GET","path":"{project}/insight/coverage","places":[],"fields":"query"},
  "insight.usefulness": {"method":"GET","path":"{project}/insight/usefulness","places":[],"fields":"query"},
  "insight.cache": {"method":"GET","path":"{project}/insight/cache","places":[],"fields":"query"},
  "insight.themes": {"method":"GET","path":"{project}/insight/themes","places":[],"fields":"query","slow":true},
  "insight.notes": {"method":"GET","path":"{project}/insight/notes","places":[],"fields":"query","slow":true},
  "insight.digest": {"method":"GET","path":"{project}/insight/digest","places":[],"fields":"query","slow":true},
  "insight.rows": {"method":"GET","path":"{project}/insight/rows","places":[],"fields":"query","slow":true,"iterate":"iterateRows"},
  "insight.dictionary": {"method":"GET","path":"{project}/insight/dictionary","places":[]},
  "connectors.create": {"method":"POST","path":"{project}/connectors","places":[],"fields":"body","once":true,"slow":true},
  "connectors.list": {"method":"GET","path":"{project}/connectors","places":[]},
  "connectors.get": {"method":"GET","path":"{project}/connectors/{connector_id}","places":["connector_id"]},
  "connectors.delete": {"method":"DELETE","path":"{project}/connectors/{connector_id}","places":["connector_id"],"once":true},
  "connectors.refresh": {"method":"POST","path":"{project}/connectors/{connector_id}/refresh","places":["connector_id"],"slow":true},
  "connectors.confirm": {"method":"POST","path":"{project}/connectors/{connector_id}/confirm","places":["connector_id"],"fields":"body","slow":true},
  "connectors.schema": {"method":"GET","path":"{project}/connectors/{connector_id}/schema","places":["connector_id"]},
  "executions.executeQuery": {"method":"POST","path":"{project}/executions","places":[],"fields":"body","once":true,"slow":true},
  "executions.list": {"method":"GET","path":"{project}/executions","places":[],"fields":"query","iterate":"iterate"},
  "executions.executeFromChat": {"method":"POST","path":"{project}/chat-messages/{chat_message_id}/execute","places":["chat_message_id"],"fields":"body","once":true,"slow":true},
  "executions.get": {"method":"GET","path":"{project}/executions/{execution_id}","places":["execution_id"]},
  "executions.delete": {"method":"DELETE","path":"{project}/executions/{execution_id}","places":["execution_id"],"once":true},
  "feedback.create": {"method":"POST","path":"{project}/feedback","places":[],"fields":"body","once":true},
  "feedback.list": {"method":"GET","path":"{project}/feedback","places":[],"fields":"query"},
  "feedback.createPositive": {"method":"POST","path":"{project}/feedback/positive","places":[],"fields":"body","once":true},
  "feedback.listPositive": {"method":"GET","path":"{project}/feedback/positive","places":[],"fields":"query"},
  "feedback.createNegative": {"method":"POST","path":"{project}/feedback/negative","places":[],"fields":"body","once":true},
  "feedback.listNegative": {"method":"GET","path":"{project}/feedback/negative","places":[],"fields":"query"},
  "feedback.bulkDelete": {"method":"POST","path":"{project}/feedback/bulk-delete","places":[],"fields":"body","once":true},
  "feedback.getFeedbackForMessage": {"method":"GET","path":"{project}/chat-messages/{chat_message_id}/feedback","places":["chat_message_id"],"fields":"query"},
  "feedback.get": {"method":"GET","path":"{project}/feedback/{feedback_id}","places":["feedback_id"]},
  "feedback.update": {"method":"PATCH","path":"{project}/feedback/{feedback_id}","places":["feedback_id"],"fields":"body","once":true},
  "feedback.delete": {"method":"DELETE","path":"{project}/feedback/{feedback_id}","places":["feedback_id"],"once":true},
  "chat.executionCacheLookup": {"method":"POST","path":"{project}/execution-cache-lookup","places":[],"fields":"body","slow":true},
  "chat.confirmSuggestion": {"method":"POST","path":"{project}/confirm-suggestion","places":[],"fields":"body","once":true,"slow":true},
  "chat.executionCacheCoverage": {"method":"GET","path":"{project}/execution-cache-coverage","places":[],"fields":"query","slow":true},
  "chat.chatToSql": {"method":"POST","path":"{project}/chat-sessions/{chat_session_id}/chat-to-sql","places":["chat_session_id"],"fields":"body","once":true,"slow":true},
  "chat.chatToAnswer": {"method":"POST","path":"{project}/chat-sessions/{chat_session_id}/chat-to-answer","places":["chat_session_id"],"fields":"body","once":true,"slow":true},
  "chatSessions.create": {"method":"POST","path":"{project}/chat-sessions","places":[],"fields":"body","once":true},
  "chatSessions.list": {"method":"GET","path":"{project}/chat-sessions","places":[],"fields":"query","iterate":"iterate"},
  "chatSessions.get": {"method":"GET","path":"{project}/chat-sessions/{chat_session_id}","places":["chat_session_id"]},
  "chatSessions.delete": {"method":"DELETE","path":"{project}/chat-sessions/{chat_session_id}","places":["chat_session_id"],"once":true},
  "chatSessions.getQuestions": {"method":"GET","path":"{project}/chat-sessions/{chat_session_id}/questions","places":["chat_session_id"]},
  "goldenExamples.create": {"method":"POST","path":"{project}/golden-examples","places":[],"fields":"body","once":true},
  "goldenExamples.list": {"method":"GET","path":"{project}/golden-examples","places":[],"fields":"query"},
  "goldenExamples.promote": {"method":"POST","path":"{project}/golden-examples/promote","places":[],"fields":"body","once":true},
  "goldenExamples.importExamples": {"method":"POST","path":"{project}/golden-examples/import","places":[],"fields":"body","slow":true},
  "goldenExamples.get": {"method":"GET","path":"{project}/golden-examples/{example_id}","places":["example_id"]},
  "goldenExamples.update": {"method":"PATCH","path":"{project}/golden-examples/{example_id}","places":["example_id"],"fields":"body","once":true},
  "goldenExamples.delete": {"method":"DELETE","path":"{project}/golden-examples/{example_id}","places":["example_id"],"once":true},
  "review.list": {"method":"GET","path":"{project}/review","places":[],"fields":"query","iterate":"iterate"},
  "review.get": {"method":"GET","path":"{project}/review/{item_id}","places":["item_id"]},
  "review.assign": {"method":"POST","path":"{project}/review/{item_id}/assign","places":["item_id"],"fields":"body","once":true},
  "review.resolve": {"method":"POST","path":"{project}/review/{item_id}/resolve","places":["item_id"],"fields":"body","once":true},
  "review.dismiss": {"method":"POST","path":"{project}/review/{item_id}/dismiss","places":["item_id"],"fields":"body","once":true},
  "review.reopen": {"method":"POST","path":"{project}/review/{item_id}/reopen","places":["item_id"],"fields":"body","once":true},
  "review.fix": {"method":"POST","path":"{project}/review/{item_id}/fix","places":["item_id"],"fields":"body","once":true},
  "review.askAgain": {"method":"POST","path":"{project}/review/{item_id}/ask-again","places":["item_id"],"slow":true},
  "review.undo": {"method":"POST","path":"{project}/review/events/{event_id}/undo","places":["event_id"],"fields":"body"},
  "keys.create": {"method":"POST","path":"{project}/keys","places":[],"fields":"body","once":true},
  "keys.list": {"method":"GET","path":"{project}/keys","places":[]},
  "keys.rotateSigning": {"method":"POST","path":"{project}/keys/rotate-signing","places":[],"fields":"body","once":true},
  "audit": {"method":"GET","path":"{project}/audit","places":[],"fields":"query","iterate":"iterateAudit"},
  "keys.revoke": {"method":"DELETE","path":"{project}/keys/{key_id}","places":["key_id"],"once":true},
  "keys.createToken": {"method":"POST","path":"{project}/tokens","places":[],"fields":"body"},
  "jobs.list": {"method":"GET","path":"{project}/jobs","places":[],"fields":"query","iterate":"iterate"},
  "jobs.improve": {"method":"POST","path":"{project}/jobs/improve","places":[],"fields":"body"},
  "jobs.get": {"method":"GET","path":"{project}/jobs/{job_id}","places":["job_id"]},
  "jobs.cancel": {"method":"POST","path":"{project}/jobs/{job_id}/cancel","places":["job_id"]},
  "jobs.retry": {"method":"POST","path":"{project}/jobs/{job_id}/retry","places":["job_id"],"once":true},
  "server.healthz": {"method":"GET","path":"/healthz","places":[]},
  "server.readyz": {"method":"GET","path":"/readyz","places":[]},
  "server.metrics": {"method":"GET","path":"/metrics","places":[],"text":true},
  "server.jobs": {"method":"GET","path":"/v1/jobs","places":[]},
  "server.projects": {"method":"GET","path":"/v1/projects","places":[]},
};
