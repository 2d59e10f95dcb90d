/** What the gateway answers (docs/protocol.md §13). Fields that do not apply are missing. */

import type { Json } from "../shared/json";

export const STATUSES = ["pending", "running", "paused", "succeeded", "failed", "canceled"] as const;
export type TaskStatus = (typeof STATUSES)[number];
export type ViewStatus = TaskStatus | "unknown";

export interface Route {
  prev: string[];
  curr: string;
  next: string[];
}

export interface ErrorInfo {
  type: string;
  message: string;
  mro?: string[];
  traceback?: string;
}

export interface PauseField {
  name: string;
  type: "string" | "number" | "boolean" | "array" | "object";
  prompt?: string;
  required?: boolean;
  default?: Json;
  options?: Json[];
}

/** A value of the payload that a pause shows; without `text` the payload lacks it. */
export interface ShownValue {
  pointer: string;
  text?: string;
  type?: "string" | "number" | "boolean" | "null" | "array" | "object";
  cut?: boolean;
}

export interface TaskPause {
  prompt: string;
  fields: PauseField[];
  since: string;
  until?: string;
  /** In the answer about one task. */
  shown?: ShownValue[];
}

export interface StageNote {
  stage: number;
  name?: string;
  tasks?: number;
  done?: number;
  rows_read?: number;
  rows_written?: number;
  /** When a task of the stage ended last. */
  progress_at?: string;
  began_at?: string;
}

export interface RunNote {
  run_id: string;
  job_run_id: string;
  state: string;
  at: string;
  envelopes: number;
  done?: number;
  stages?: StageNote[];
}

export interface EarlierGeneration {
  generation: number;
  status: TaskStatus;
  reason?: string;
  actor?: string;
  ended_at?: string;
  resolution?: Resolution;
}

/** What became of a failed task, or of any task that was replayed (docs/protocol.md §13, resolution). */
export interface Resolution {
  how: "replayed" | "redriven" | "dismissed" | "overtaken";
  at?: string;
  by?: string;
  /** The task that runs in its place. */
  task?: string;
  status?: TaskStatus;
  reason?: string;
  /** Whether the failure is open again. */
  is_open?: boolean;
}

/** Who canceled a task; `root` if it was canceled together with its root. */
export interface Cancellation {
  at: string;
  by?: string;
  root?: string;
}

/** What started a task: the name of a trigger, or the id of a backfill or of the replayed task; the triggers that led to it. */
export interface StartedBy {
  kind: "caller" | "trigger" | "backfill" | "replay";
  name?: string;
  slot?: string;
  after?: string[];
}

/** The last failed attempt of a running task; `next_at` until the next attempt begins. */
export interface Retry {
  attempt: number;
  max_attempts: number;
  error: ErrorInfo;
  failed_at: string;
  next_at?: string;
}

export interface TaskView {
  id: string;
  parent_id?: string;
  root_id?: string;
  status: ViewStatus;
  progress_percent: number;
  actor?: string;
  tool?: string | null;
  started_by?: StartedBy | null;
  route?: Route;
  attempt?: number;
  result?: Json;
  result_uri?: string;
  error?: ErrorInfo;
  /** The error of its group, of a task that failed or runs again (§13.failures). */
  error_group?: string;
  reason?: string;
  provisional?: boolean;
  pause?: TaskPause;
  waiting_until?: string;
  run?: RunNote;
  problem?: { type: string; message: string };
  retry?: Retry;
  created_at: string;
  updated_at: string;
  deadline_at?: string;
  generation: number;
  earlier?: EarlierGeneration[];
  owner?: string;
  canceled?: Cancellation;
  resolution?: Resolution;
}

/** Return whether a failed task still waits for somebody: it was not replayed, dismissed or overtaken, or its replay failed too. */
export function isOpenFailure(task: TaskView): boolean {
  return task.status === "failed" && (task.resolution === undefined || task.resolution.is_open === true);
}

/** A slice without a result; `id` is missing where the mesh does not derive it. */
export interface MissingSlice {
  slice_index: number;
  id?: string;
  is_lost?: boolean;
}

/** The set of slices that a task waits for, or in which it has ended. */
export interface SetView {
  set_id: string;
  position: number;
  slice_count: number;
  arrived: number;
  missing: MissingSlice[];
  due_at: string;
  decision?: string;
}

export interface Page<Item> {
  items: Item[];
  /** Of a page of failed tasks, how many it leaves out because they are settled. */
  resolved?: number;
  next_cursor?: string;
}

export interface TimelineEntry {
  generation: number;
  position: number;
  attempt: number;
  actor: string;
  received_at?: string;
  processing_at?: string;
  completed_at?: string;
  message_size_kb?: number;
  duration_ms?: number;
  /** Of a trace that X-Ray has. */
  trace_id?: string;
  run?: RunNote;
}

export interface FailureGroup {
  actor: string;
  error: string;
  count: number;
  first: string;
  last: string;
  example: string;
}

export interface Replayed {
  id: string;
}

export interface KeptHop {
  hop: number;
  actor: string;
  generation: number;
  before: boolean;
  after: boolean;
  size?: number;
  /** Where the payload before the hop is from; missing from a gateway of an older version. */
  copy?: "input" | "dead_letter" | "checkpoint" | "failure" | null;
}

export interface StoredPayload {
  text?: string;
  uri: string;
  size: number;
  truncated?: boolean;
  problem?: string;
}

export interface HopPayloads {
  before?: StoredPayload | null;
  after?: StoredPayload | null;
}

export interface LogLine {
  id: string;
  at?: string;
  actor: string;
  line: string;
  run_id?: string;
  worker?: string;
  stream?: string;
  truncated?: boolean;
}

/** A partial of a handler (FLY), as the stream has it. */
export interface PartialEvent {
  actor: string;
  position: number;
  attempt: number;
  sequence: number;
  data: Json;
}

/** What the console's own server says about the mesh. */
export interface MeshInfo {
  namespace: string;
  region: string;
  is_local: boolean;
  options: string;
  version: string;
}

export interface RedriveOutcome {
  id: string;
  generation?: number;
  problem?: string;
}

const ENDED: ReadonlySet<string> = new Set(["succeeded", "failed", "canceled"]);

/** Whether a task has ended. */
export function hasEnded(status: ViewStatus): boolean {
  return ENDED.has(status);
}
