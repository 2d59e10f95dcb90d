/** What the gateway answers, what the console's own server does, and what both mean. */

import type { Json } from "../shared/json";
import type { ActorNumbers, TaskView } from "./gateway";

export type * from "./gateway";

export type ViewStatus = TaskView["status"];
export type TaskStatus = Exclude<ViewStatus, "unknown">;
export const STATUSES: readonly TaskStatus[] = ["pending", "running", "paused", "succeeded", "failed", "canceled"];
export type CircuitState = NonNullable<ActorNumbers["circuit"]>;

/** Return whether a failed task still waits for somebody: it was not replayed, dismissed or overtaken, or its replay failed too. */
export function isOpenFailure(task: TaskView): boolean {
  return task.status === "failed" && (task.resolution === undefined || task.resolution.is_open === true);
}

export interface Page<Item> {
  items: Item[];
  /** Of a page of failed tasks, how many it leaves out because they are settled. */
  resolved?: number;
  next_cursor?: string;
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

/** Whether a task waits for an answer or a time at a pause actor. */
export function isPaused(status: ViewStatus): boolean {
  return status === "paused";
}

/** Whether a task has failed or was canceled. */
export function hasEndedBadly(status: ViewStatus): boolean {
  return status === "failed" || status === "canceled";
}
