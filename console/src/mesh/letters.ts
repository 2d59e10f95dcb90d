/** What a dead letter says. */

import type { DeadLetter } from "../api/operations";
import type { TaskView } from "../api/types";

/** Return why a message is a dead letter. */
export function whyOf({ error, reason }: DeadLetter): string {
  if (error !== undefined) return [error.type, error.message].filter(Boolean).join(": ");
  return reason ?? "no reason is known";
}

/** Return a body with a line for each member if it is JSON, and else as it is. */
export function readable(body: string): string {
  if (!/^\s*[{[]/.test(body) || hasLargeNumber(body)) return body;
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

const STRINGS = /"(?:[^"\\]|\\.)*"/g;

/** JavaScript would round a number of more than 15 digits. */
function hasLargeNumber(body: string): boolean {
  return /\d{16}|\d[eE]/.test(body.replace(STRINGS, '""'));
}

/** Return a letter as a failed task: the record of its task may be late, so the server decides whether it is sent again. */
export function letterTask({ id, actor, sent_at: at, generation = 0 }: DeadLetter): TaskView {
  return { id, actor, status: "failed", progress_percent: 0, created_at: at, updated_at: at, generation };
}
