/** Which tasks a filter selects. The gateway filters too; a gateway of an older version ignores what it does not know. */

import { isOpenFailure, type TaskView } from "../api/types";
import { ageSeconds, type TaskFilter } from "../view";
import { failureText } from "./failures";

/** Return the query of a list: the names of the gateway's parameters. */
export function listQuery(filter: TaskFilter, now: number): Record<string, string> {
  const query: Record<string, string> = {};
  if (filter.status) query["status"] = filter.status;
  if (filter.tool) query["tool"] = filter.tool;
  if (filter.actor) query["actor"] = filter.actor;
  if (filter.owner) query["owner"] = filter.owner;
  if (filter.error) query["error"] = filter.error;
  if (filter.age) query["since"] = earliest(filter.age, now);
  if (filter.roots) query["roots"] = "true";
  if (filter.retrying) query["retrying"] = "true";
  if (filter.resolved) query["resolved"] = "true";
  return query;
}

/** Return the time before `now` by an age, in UTC. */
export function earliest(age: string, now: number): string {
  return new Date(now - ageSeconds(age) * 1000).toISOString();
}

/** Return whether a filter selects a task; `since` is the time of its age. */
export function isSelected(task: TaskView, filter: TaskFilter, since: string | undefined): boolean {
  return (
    (!filter.status || task.status === filter.status) &&
    (filter.status !== "failed" || filter.resolved === true || isOpenFailure(task)) &&
    (!filter.tool || task.tool === filter.tool) &&
    (!filter.actor || task.actor === filter.actor) &&
    (!filter.owner || (task.owner ?? "") === filter.owner) &&
    (!filter.roots || !task.parent_id) &&
    (!filter.retrying || task.retry !== undefined) &&
    (!since || Date.parse(task.created_at) >= Date.parse(since)) &&
    (!filter.error || hasError(task, filter.error))
  );
}

function hasError(task: TaskView, text: string): boolean {
  const wanted = text.toLowerCase();
  const retried = task.retry && `${task.retry.error.type}: ${task.retry.error.message}`;
  return [failureText(task), retried ?? "", task.reason ?? "", task.error_group ?? ""].some((each) => each.toLowerCase().includes(wanted));
}
