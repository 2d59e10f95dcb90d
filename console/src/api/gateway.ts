/**
 * What the gateway answers (docs/protocol.md §13), from its OpenAPI document. Fields that do not apply are missing.
 *
 * Written by `make console-types`; change the types of the calls instead.
 */

import type { Json } from "../shared/json";

/** What the mesh file grants to an actor (mesh file, `access`). No function decides by it: operators read it. */
export interface Access {
  kind: "bucket" | "database" | "secret" | "statement" | "table";
  /** Of the bucket, table, secret or database; empty of a statement. */
  name: string;
  /** The folder with the folders of a database's tables. */
  location: string | null;
  /** Patterns of keys, or of the tables of a database. */
  read: string[];
  /** Patterns of keys, or of the tables of a database. */
  write: string[];
  /** A raw IAM statement. */
  statement: Record<string, Json> | null;
}

/** One actor with its settings. */
export interface ActorDetails {
  numbers: ActorNumbers;
  queue: QueueState;
  /** Seconds of a call. */
  timeout: number;
  batch_size: number;
  frames: string;
  keep_input: boolean;
  deduplicate: boolean;
  /** Null for every actor. */
  can_send_to: string[] | null;
  /** The names of the variables. */
  secrets: string[];
  /** What the mesh file grants beyond the mesh. */
  access: Access[];
  policies: Record<string, Policy>;
  rules: Rule[];
  circuit_breaker: CircuitBreaker | null;
  durations: Durations;
  /** The newest tasks that failed here, of about 1,000 failed ones of the mesh. */
  recent_errors: RecentError[];
}

/** One actor. */
export interface ActorNumbers {
  name: string;
  /** `handler`, `spark`, `fan_in`, `pause`, `end` or `crew`. */
  kind: string;
  /** Messages, approximately. */
  waiting: number;
  /** Messages, approximately. */
  in_flight: number;
  /** Messages, approximately. */
  dead_letters: number;
  /** How long the oldest message has waited; null if CloudWatch does not know it. */
  oldest_seconds: number | null;
  /** Hops, and those that failed, of the last 5 minutes; null without a value. */
  per_minute: number | null;
  /** Hops, and those that failed, of the last 5 minutes; null without a value. */
  failing_per_minute: number | null;
  /** The state of the circuit breaker; null without one. */
  circuit: "closed" | "half-open" | "open" | null;
  /** Of a circuit that is not closed. */
  open_circuit: OpenCircuit | null;
  /** Of a heavy actor. */
  runs: RunNumbers | null;
  /** Why no function reads the queue; null if one does, or if it is unknown. */
  not_read: Unread | null;
}

/** What Spark has measured of the stages of a call, in bytes (`protocol §10.work`). */
export interface CallWork {
  stages?: number;
  tasks?: number;
  shuffle_read?: number;
  shuffle_written?: number;
  spilled_memory?: number;
  spilled_disk?: number;
  /** The stage with the longest task among those that are skewed. */
  skew?: StageSkew;
}

/** Who canceled a task, and when (`protocol §13.cancel.by`). */
export interface Cancellation {
  /** When (RFC 3339). */
  at: string;
  /** The principal of the caller; null if the task was canceled together with its root. */
  by?: string;
  /** The root with which the task was canceled. */
  root?: string;
}

/** Stops the calls of a handler that keeps failing. All instances of its function share one state. */
export interface CircuitBreaker {
  failures: number;
  window: number;
  open_for: number;
}

/** The response: what became of the task; no `resolution` after an undo. */
export interface Dismissed {
  id: string;
  resolution?: Resolution;
}

/** The milliseconds of a handler's calls in the last hour; None without a value. */
export interface Durations {
  median: number | null;
  p95: number | null;
}

/** The result of an earlier generation, before a redrive reopened the task (`protocol §12`). */
export interface EarlierGeneration {
  generation: number;
  /** The last known status; a late report may still end the generation. */
  status: "canceled" | "failed" | "paused" | "pending" | "running" | "succeeded";
  /** Set once the generation has ended; the error holds type and message only. */
  ended_at?: string;
  /** Set once the generation has ended; the error holds type and message only. */
  actor?: string;
  /** Set once the generation has ended; the error holds type and message only. */
  reason?: string;
  /** Set once the generation has ended; the error holds type and message only. */
  error?: ErrorInfo;
  /** As in `TaskRecord`. */
  provisional?: boolean;
  /** How the failure of this generation was settled. */
  resolution?: Resolution;
}

/** Who sends to whom: along the route of a tool, or because the mesh file says so. */
export interface Edge {
  from: string;
  to: string;
  tool?: string;
}

/** The answer to the cancellation of a task whose end is claimed, but not on record yet. */
export interface Ended {
  id: string;
  status: string;
}

/** One envelope of a run. */
export interface EnvelopeLine {
  id: string;
  generation: number;
  position: number;
  attempt: number;
  /** How its result ended, or what follows without one. */
  outcome: string;
  error: string;
  /** The duration of its call; 0 if unknown. */
  milliseconds: number;
  /** Its share of the run; null until the run has ended. */
  usage: Usage | null;
  /** Its share of the run; null until the run has ended. */
  dollars: number | null;
  /** What Spark has measured of its call; null if unknown, and of a job with one call for all. */
  work: CallWork | null;
}

/** An error: its type (module-qualified except for builtins), message, ancestors and traceback. */
export interface ErrorInfo {
  type: string;
  message: string;
  mro: string[];
  traceback: string;
}

/** Tasks that failed at one actor with the same error. */
export interface FailureGroup {
  /** The actor at which they failed; empty if it is unknown. */
  actor: string;
  /** Type and first line of their error, at most 300 characters, with numbers, times and ids of its values as `#`. */
  error: string;
  /** The number of tasks. */
  count: number;
  /** When the first and the last of them were created. */
  first: string;
  /** When the first and the last of them were created. */
  last: string;
  /** The id of the last one. */
  example: string;
}

/** The groups of one page of failed tasks, most tasks first. */
export interface FailureList {
  items: FailureGroup[];
  /** Failed tasks that the groups leave out, because they are settled or go on in a failed replay. */
  resolved?: number;
  next_cursor?: string;
}

/** A heartbeat, as `asya_spark` writes it. Of two copies the higher `beat` counts. */
export interface HeartbeatRecord {
  at: string;
  beat: number;
  /** The indexes of the members at work. */
  at_work: number[];
  done: number;
  stages: StageNote[];
  /** The number of executors that the run has had; null if the driver needs none, or did not say. */
  executors: number | null;
}

/** The payloads before and after one hop; None if they are not kept. */
export interface HopPayloads {
  hop: number;
  actor: string;
  generation: number;
  before: PayloadText | null;
  after: PayloadText | null;
}

/** A hop with a kept payload. */
export interface KeptHop {
  /** Its position in the route. */
  hop: number;
  /** The one that has kept the payload as its input; else its name in the route, empty if unknown. */
  actor: string;
  generation: number;
  /** Whether the payload before or after the hop is kept. */
  before: boolean;
  /** Whether the payload before or after the hop is kept. */
  after: boolean;
  /** The bytes of the kept object, the one before the hop if there is one. */
  size: number;
  /** Where the payload before the hop is from. A replay may start at an `input` and at a `checkpoint`; null without one. */
  copy: "checkpoint" | "dead_letter" | "failure" | "input" | null;
}

/** The hops of a task with kept payloads, first to last. */
export interface KeptHops {
  items: KeptHop[];
}

/** Why an envelope failed: type and message, the message cut to 1,024 characters. */
export interface LetterError {
  type: string;
  message: string;
}

/** Dead letters, and the queues that have some. */
export interface LetterPage {
  items: LetterView[];
  queues: LetterQueue[];
  /** Whether the answer ends before the queues do. */
  has_more: boolean;
}

/** The approximate number of dead letters of an actor; `hidden` ones are being read or redriven by somebody. */
export interface LetterQueue {
  actor: string;
  visible: number;
  hidden: number;
}

/** One dead letter. */
export interface LetterView {
  /** The actor or system function that the message was sent to. */
  actor: string;
  /** The id of the envelope or of its task; that of the SQS message if it belongs to no task. */
  id: string;
  message_id: string;
  /** Of the envelope; left out if the message has no valid envelope. */
  hop?: number;
  /** Of the envelope; left out if the message has no valid envelope. */
  generation?: number;
  /** When the message was sent (RFC 3339). */
  sent_at: string;
  /** How often SQS has delivered the message, reads of its dead-letter queue included. */
  receives: number;
  /** Those to the function: as many as its queue allows. The others are looks at the dead letter. Left out for. */
  deliveries?: number;
  /** The status of the task; left out without a record. */
  task?: string;
  /** The reason of the end of the task. */
  reason?: string;
  error?: LetterError;
  /** The message as text. */
  body: string;
  /** The bytes of the message. */
  size: number;
  /** Whether the body is cut. */
  truncated?: boolean;
}

/** One line. */
export interface LogLine {
  /** Names the line; the same line has it in each answer. */
  id: string;
  /** When a function wrote it (RFC 3339); the files of a job run tell no time. */
  at?: string;
  /** Whose function or whose job run. */
  actor: string;
  /** The text: JSON if the mesh itself wrote it. */
  line: string;
  /** The job run. */
  run_id?: string;
  /** `driver`, or the number of an executor. */
  worker?: string;
  /** `stdout` or `stderr`. */
  stream?: string;
  /** Whether the line is cut. */
  truncated?: boolean;
}

/** A page of lines; `next_cursor` is set if there may be more. */
export interface LogPage {
  items: LogLine[];
  next_cursor?: string;
}

/** The whole mesh at one moment (RFC 3339). */
export interface MeshNumbers {
  namespace: string;
  at: string;
  actors: ActorNumbers[];
  edges: Edge[];
  tools: ToolRoute[];
}

/** A slice without a result. */
export interface MissingSlice {
  /** 0 for the origin. */
  slice_index: number;
  /** The task of the slice; left out if the actor that fanned out numbers its children (`protocol §14`). */
  id?: string;
  /** Whether the slice has ended without a result. */
  is_lost?: boolean;
}

/** Why calls of an actor are rejected, and until when (RFC 3339). */
export interface OpenCircuit {
  /** When the circuit opened. */
  since: string | null;
  /** When a probe is allowed. */
  next_call_at: string;
  /** The error of the last failed call. */
  error: string;
  /** So many failed calls within so many seconds open the circuit. */
  failures: number;
  /** So many failed calls within so many seconds open the circuit. */
  window: number;
}

/** A question for the caller who resumes the task. */
export interface PauseField {
  name: string;
  type: "array" | "boolean" | "number" | "object" | "string";
  prompt?: string;
  payload_key?: string;
  required?: boolean;
  default?: Json;
  options?: Json[];
}

/** A kept payload. */
export interface PayloadText {
  /** JSON, as it was stored. */
  text: string;
  /** The object that holds it: the kept envelope, or the payload itself if that was too large for a message. */
  uri: string;
  /** The bytes of the payload; those of the object if it is too large to be read. */
  size: number;
  /** Whether the text is cut. */
  truncated?: boolean;
  /** Why the payload cannot be read. */
  problem?: string;
}

/** A retry policy. */
export interface Policy {
  max_attempts: number;
  backoff: "constant" | "exponential" | "linear";
  initial_delay: number;
  max_interval: number | null;
  jitter: boolean;
  max_duration: number | null;
  then_route: string[] | null;
}

/** The settings of an actor's queue as SQS has them; seconds. */
export interface QueueState {
  visibility_timeout: number;
  retention: number;
  max_receives: number | null;
}

/** A task that has failed at the actor. */
export interface RecentError {
  id: string;
  at: string;
  reason: string | null;
  type: string;
  message: string;
}

/** What becomes of the slices of a set that is opened again. */
export interface RepeatedSlices {
  /** The slices, without the origin; null if the state of the old set has expired. */
  total: number | null;
  /** Those whose results are copied at least: results that came after the end of the set are copied too. */
  copied: number;
  /** The indices of those that run again at most; null for all of them. */
  again: number[] | null;
}

/** The response: the new task, and the object from which it starts. */
export interface Replayed {
  id: string;
  replay_of: string;
  source: string;
  /** After the failure of a set. */
  slices?: RepeatedSlices;
}

/** What became of a failed task, or of any task that was replayed (`protocol §13.resolution`). */
export interface Resolution {
  /** `overtaken` by a task that did the same work. */
  how: "dismissed" | "overtaken" | "redriven" | "replayed";
  /** When it was replayed, redriven or dismissed (RFC 3339). */
  at?: string;
  /** The principal of the caller. */
  by?: string;
  /** The task that runs in its place: the last one, if replays failed and were replayed themselves. */
  task?: string;
  /** The status of that task. */
  status?: "canceled" | "failed" | "paused" | "pending" | "running" | "succeeded";
  /** Why it was dismissed. */
  reason?: string;
  /** Whether the failure is open again: its replay has failed, was canceled, or was never sent. */
  is_open?: boolean;
}

/** The response: the task continues. */
export interface Resumed {
  id: string;
  status: string;
}

/** The last failed attempt of a task that runs again (`protocol §13.retry`). */
export interface RetryView {
  /** The attempt that failed, and the attempts that the policy allows. */
  attempt: number;
  /** The attempt that failed, and the attempts that the policy allows. */
  max_attempts: number;
  /** Type and message of its error. */
  error: ErrorInfo;
  /** When it failed. */
  failed_at: string;
  /** When the next attempt is due; null once it has begun. */
  next_at?: string;
}

/** A route: the actors that are done (oldest first), the actor at work, and the actors ahead. */
export interface Route {
  prev: string[];
  curr: string;
  next: string[];
}

/** Selects the policy for errors; the first matching rule applies. */
export interface Rule {
  errors: string[];
  policy: string;
}

/** One job run with a page of its envelopes. */
export interface RunDetails {
  run_id: string;
  state: string;
  mesh_state: string;
  job_run_id: string;
  details: string;
  formed_at: string;
  running_at: string;
  envelopes: number;
  attempts: string[];
  verdict: string;
  heartbeat: HeartbeatRecord | null;
  usage: Usage | null;
  dollars: number | null;
  prices: string;
  shared: "by duration" | "equally" | null;
  members: EnvelopeLine[];
  problem: string;
  emr_state: string;
  outcomes: RunOutcomes | null;
  size: string;
  work: CallWork | null;
  actor: string;
  /** The driver's log in S3; null before its job run has reported. */
  log_uri: string | null;
  /** Set if there are more envelopes. */
  next_cursor: string | null;
}

/** One run of a list. */
export interface RunLine {
  run_id: string;
  actor: string;
  /** The word of the run, as `run_word` gives it. */
  state: string;
  is_open: boolean;
  envelopes: number;
  formed_at: string;
  /** Null until the run has ended. */
  usage: Usage | null;
  /** Null until the run has ended. */
  dollars: number | null;
  /** The state of its job run at EMR Serverless; empty without one. */
  emr_state: string;
  /** Its envelopes by outcome, as far as they are routed; null before that, and if they were not counted. */
  outcomes: RunOutcomes | null;
  /** The name of its size; empty if its actor has none. */
  size: string;
}

/** The progress of a job run, in the report of one of its envelopes. */
export interface RunNote {
  run_id: string;
  job_run_id: string;
  state: string;
  /** The time at the run (RFC 3339). */
  at: string;
  /** The number of envelopes of the run, and the number of finished ones. */
  envelopes: number;
  /** The number of envelopes of the run, and the number of finished ones. */
  done?: number;
  /** The running stages, five at most. */
  stages?: StageNote[];
  /** The resources of the whole run, after its end; the envelopes share it. */
  usage?: Usage;
  /** The name of its size; empty if its actor has none. */
  size?: string;
}

/** The job runs of a heavy actor. */
export interface RunNumbers {
  /** Envelopes that wait for a run, up to 10,000. */
  pending: number;
  /** Runs that are open. */
  running: number;
  /** Resident runs that take further envelopes. */
  lingering: number;
  /** Whether its runs do not start. */
  is_drained: boolean;
}

/** The envelopes of a run by outcome. */
export interface RunOutcomes {
  /** Whose call gave its result. */
  succeeded?: number;
  /** Whose call failed, or that the run is charged with, and that end or go to another actor. */
  failed?: number;
  /** The same, but their policy lets them run again. */
  retried?: number;
  /** Without a result, to run again without a charge. */
  again?: number;
  /** Whose task was canceled meanwhile. */
  canceled?: number;
}

/** A page of job runs: the open ones first, then the others, newest first. */
export interface RunPage {
  items: RunLine[];
  /** What the dollars are computed from. */
  prices: string;
  next_cursor?: string;
}

/** A set of slices. */
export interface SetView {
  set_id: string;
  /** Of the hop that fanned out, in the route of the origin. */
  position: number;
  /** Slices of the set, the origin (slice 0) included. */
  slice_count: number;
  /** How many slices are stored. */
  arrived: number;
  /** The others, by index. */
  missing: MissingSlice[];
  /** When the set fails or merges without them (RFC 3339). */
  due_at: string;
  /** How the set has ended: `merged`, `failed`, `canceled` or `gone`; left out while it waits. */
  decision?: string;
}

/** A value of the payload, as those who answer a pause see it. */
export interface ShownValue {
  /** JSON pointer to the value; empty for the whole payload. */
  pointer: string;
  /** The characters of a text, or the JSON of another value, with the digits that the payload has. null if the payload. */
  text?: string;
  /** Of the value; null without one. */
  type?: "array" | "boolean" | "null" | "number" | "object" | "string";
  /** Whether parts of the value are left out. */
  cut?: boolean;
}

/** A running Spark stage: its tasks, the tasks done, the rows so far, and when Spark submitted it (RFC 3339). */
export interface StageNote {
  stage: number;
  /** The line of the user's code that waits for it, such as `totals at shop_jobs.py:15`; else the name of Spark. */
  name?: string;
  tasks?: number;
  done?: number;
  rows_read?: number;
  rows_written?: number;
  began_at?: string;
  /** When a task of it ended last, or when the run looked first (RFC 3339). */
  progress_at?: string;
}

/** A stage whose longest task took ten times the median. */
export interface StageSkew {
  stage: number;
  name?: string;
  tasks?: number;
  median_ms?: number;
  longest_ms?: number;
}

/** What started a task (`protocol §13.started-by`). */
export interface StartedBy {
  kind: "backfill" | "caller" | "replay" | "trigger";
  /** The name of the trigger, the id of the backfill, or the id of the replayed task. */
  name?: string;
  /** The slot of a schedule; null for other occurrences. */
  slot?: string;
  /** The triggers whose tasks led to this start, oldest first (`protocol §16.chain`). */
  after?: string[];
}

/** A page of tasks, newest first; `next_cursor` is set if there may be more. */
export interface TaskList {
  items: TaskView[];
  /** Failed tasks that the page leaves out, because they are settled or go on in a failed replay. */
  resolved?: number;
  next_cursor?: string;
}

/** The question that a paused task waits for, and the start of the pause. */
export interface TaskPause {
  prompt: string;
  fields: PauseField[];
  since: string;
  /** When the pause ends without an answer; unset if only an answer ends it. */
  until?: string;
  /** The link that answers the pause; its holder may answer. Unset without one. */
  callback?: string;
  /** What the pause shows of the payload; unset if that is nothing. */
  shown?: ShownValue[];
}

/** A failure of the infrastructure that keeps an envelope on its queue, such as a refused message (`protocol §13`). */
export interface TaskProblem {
  type: string;
  message: string;
}

/** The set that a task waits for, or in which it has ended; None without one. */
export interface TaskSet {
  set: SetView | null;
}

/** The response of `GET /api/v1/mesh/{id}`; fields that do not apply are omitted. */
export interface TaskView {
  id: string;
  parent_id?: string;
  root_id?: string;
  status: "canceled" | "failed" | "paused" | "pending" | "running" | "succeeded" | "unknown";
  progress_percent: number;
  actor?: string;
  route?: Route;
  attempt?: number;
  result?: Json;
  result_uri?: string;
  error?: ErrorInfo;
  error_group?: string;
  reason?: string;
  provisional?: boolean;
  pause?: TaskPause;
  waiting_until?: string;
  run?: RunNote;
  problem?: TaskProblem;
  retry?: RetryView;
  created_at: string;
  updated_at: string;
  deadline_at?: string;
  generation: number;
  earlier?: EarlierGeneration[];
  owner?: string;
  context?: string;
  tool?: string;
  started_by?: StartedBy;
  canceled?: Cancellation;
  resolution?: Resolution;
}

/** A page of a task's hops, first to last; `next_cursor` is set if there are more. */
export interface Timeline {
  items: TimelineEntry[];
  next_cursor?: string;
}

/** One attempt at one hop; unreported times are omitted. */
export interface TimelineEntry {
  generation: number;
  position: number;
  attempt: number;
  actor: string;
  received_at?: string;
  processing_at?: string;
  completed_at?: string;
  /** Kilobytes of the message and milliseconds of the handler, as reported. */
  message_size_kb?: number;
  /** Kilobytes of the message and milliseconds of the handler, as reported. */
  duration_ms?: number;
  /** Of a trace that X-Ray has. */
  trace_id?: string;
  /** The progress of a heavy actor's job run; after its end, the time and resources it used. */
  run?: RunNote;
}

/** A tool of the mesh file. */
export interface ToolRoute {
  name: string;
  route: string[];
}

/** Why no function reads a queue, and how that is repaired. */
export interface Unread {
  /** Such as `event source mapping disabled`. */
  reason: string;
  /** A command to type, or what to do. */
  repair: string;
}

/** The resources that a run used, in hours of one unit each. */
export interface Usage {
  vcpu_hours: number;
  memory_gb_hours: number;
  /** Storage beyond the free storage of each worker. */
  storage_gb_hours: number;
  /** Whether the numbers are the billed ones of EMR Serverless, not the used ones. */
  billed: boolean;
}
