/** The text of a failure, and tasks that failed for the same reason; the gateway says which error is the same. */

import { type FailureGroup, hasEndedBadly, isOpenFailure, type Resolution, type RetryView, type TaskView } from "../api/types";
import { shortTime } from "../shared/format";

/** Return the error of a task, such as `KeyError: 'price'`; else its reason, or nothing. */
export function failureText(task: TaskView): string {
  if (task.error !== undefined) return `${task.error.type}: ${task.error.message}`;
  return hasEndedBadly(task.status) ? (task.reason ?? "") : "";
}

/** Return which attempt of a task failed and why, and when the next one is due. */
export function retryText({ attempt, max_attempts, error, next_at }: RetryView): string {
  const next = next_at === undefined ? "the next is at work" : `the next is due at ${shortTime(next_at)}`;
  return `attempt ${attempt} of ${max_attempts} failed, ${next}: ${error.type}: ${error.message}`;
}

/** Group failed tasks, newest first, by actor and error; most tasks first. */
export function groupFailures(tasks: readonly TaskView[]): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const task of tasks) {
    if (!isOpenFailure(task) && task.retry === undefined) continue;
    const actor = task.actor ?? "";
    const error = task.error_group ?? failureText(task);
    const key = JSON.stringify([actor, error]);
    const group = groups.get(key);
    if (group === undefined) {
      const { created_at: at } = task;
      groups.set(key, { actor, error, count: 1, first: at, last: at, example: task.id });
    } else {
      group.count += 1;
      group.first = task.created_at;
    }
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}

/** Add up the groups of several pages: the older page is the second one. */
export function addGroups(newer: readonly FailureGroup[], older: readonly FailureGroup[]): FailureGroup[] {
  const sums = new Map<string, FailureGroup>();
  for (const group of [...newer, ...older]) {
    const key = JSON.stringify([group.actor, group.error]);
    const sum = sums.get(key);
    sums.set(key, sum === undefined ? group : { ...sum, count: sum.count + group.count, first: group.first });
  }
  return [...sums.values()].sort((one, other) => other.count - one.count);
}

/** Return what became of a failure, without the task that runs in its place: `replayed: succeeded`. */
export function resolutionText({ how, status, reason, is_open }: Resolution): string {
  if (how === "dismissed") return `dismissed: ${reason ?? ""}`;
  return `${how}${status === undefined ? "" : `: ${status}`}${is_open ? ", open again" : ""}`;
}
