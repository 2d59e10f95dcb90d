/** What the gateway answers operators about the mesh, dead letters and job runs (docs/protocol.md §13, operations). */

import type { Json } from "../shared/json";
import type { LogLine, StageNote } from "./types";

export type CircuitState = "closed" | "open" | "half-open";

/** Why calls of an actor are rejected, and until when. */
export interface OpenCircuit {
  since: string | null;
  next_call_at: string;
  error: string;
  failures: number;
  window: number;
}

/** Why no function reads a queue, and what starts it again. */
export interface Unread {
  reason: string;
  repair: string;
}

/** Numbers that CloudWatch or SQS do not know are null; a local cloud has no rates. */
export interface ActorNumbers {
  name: string;
  kind: string;
  waiting: number;
  in_flight: number;
  dead_letters: number;
  oldest_seconds: number | null;
  per_minute: number | null;
  failing_per_minute: number | null;
  circuit: CircuitState | null;
  runs: RunNumbers | null;
  open_circuit?: OpenCircuit | null;
  /** Null if the queue is read, or if that is unknown. */
  not_read?: Unread | null;
}

export interface RunNumbers {
  pending: number;
  running: number;
  lingering: number;
  is_drained: boolean;
}

export interface MeshEdge {
  from: string;
  to: string;
  tool?: string;
}

export interface ToolRoute {
  name: string;
  route: string[];
}

export interface MeshNumbers {
  namespace: string;
  at: string;
  actors: ActorNumbers[];
  edges: MeshEdge[];
  tools: ToolRoute[];
}

export interface Policy {
  max_attempts: number;
  backoff: string;
  initial_delay: number;
  max_interval: number | null;
  jitter: boolean;
  max_duration: number | null;
  then_route: string[] | null;
}

/** What the mesh file grants to an actor beyond the mesh. */
export interface Access {
  kind: string;
  name: string;
  location?: string | null;
  read: string[];
  write: string[];
  statement?: Json;
}

export interface RecentError {
  id: string;
  at: string;
  reason: string | null;
  type: string;
  message: string;
}

export interface ActorDetails {
  numbers: ActorNumbers;
  queue: { visibility_timeout: number; retention: number; max_receives: number | null };
  timeout: number;
  batch_size: number;
  frames: string;
  keep_input: boolean;
  deduplicate: boolean;
  /** Null for every actor. */
  can_send_to: string[] | null;
  secrets: string[];
  /** Missing from a gateway of an earlier version. */
  access?: Access[];
  policies: Record<string, Policy>;
  rules: { errors: string[]; policy: string }[];
  circuit_breaker: { failures: number; window: number; open_for: number } | null;
  durations: { median: number | null; p95: number | null };
  recent_errors: RecentError[];
}

export interface DeadLetter {
  actor: string;
  id: string;
  message_id: string;
  hop?: number;
  generation?: number;
  sent_at: string;
  receives: number;
  /** Those of the receives that were deliveries to the function; missing if it is unknown. */
  deliveries?: number;
  task?: string;
  reason?: string;
  error?: { type: string; message: string };
  body: string;
  size: number;
  truncated?: boolean;
}

export interface DeadLetterPage {
  items: DeadLetter[];
  queues: { actor: string; visible: number; hidden: number }[];
  has_more: boolean;
}

export interface Usage {
  vcpu_hours: number;
  memory_gb_hours: number;
  storage_gb_hours: number;
  billed: boolean;
}

/** The envelopes of a run by outcome; a count of 0 is left out. */
export type RunOutcomes = Partial<Record<"succeeded" | "failed" | "retried" | "again" | "canceled", number>>;

export interface RunLine {
  run_id: string;
  actor: string;
  state: string;
  /** The state of its job run at EMR Serverless; a gateway of an older version has it as `state`. */
  emr_state?: string;
  outcomes?: RunOutcomes | null;
  is_open: boolean;
  envelopes: number;
  formed_at: string;
  usage: Usage | null;
  dollars: number | null;
}

export interface RunPage {
  items: RunLine[];
  prices: string;
  next_cursor?: string;
}

export interface RunMember {
  id: string;
  generation: number;
  position: number;
  attempt: number;
  outcome: string;
  error: string;
  milliseconds: number;
  usage: Usage | null;
  dollars: number | null;
}

export interface RunDetails {
  run_id: string;
  actor: string;
  state: string;
  mesh_state: string;
  emr_state?: string;
  outcomes?: RunOutcomes | null;
  job_run_id: string;
  details: string;
  formed_at: string;
  running_at: string;
  envelopes: number;
  attempts: string[];
  verdict: string;
  heartbeat: { at: string; done: number; stages: StageNote[]; executors: number | null } | null;
  usage: Usage | null;
  dollars: number | null;
  prices: string;
  shared: string | null;
  members: RunMember[];
  problem: string;
  log_uri: string | null;
  next_cursor: string | null;
}

export interface LogPage {
  items: LogLine[];
  next_cursor?: string;
}
