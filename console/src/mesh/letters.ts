/** What a dead letter says. */

import { DEAD_LETTER } from "../actions/bulk";
import type { LetterView, TaskView } from "../api/types";
import { counted } from "../shared/format";

/** Return why a message is a dead letter. */
export function whyOf({ error, reason }: LetterView): string {
  if (error !== undefined) return [error.type, error.message].filter(Boolean).join(": ");
  return reason ?? "no reason is known";
}

/** Return how often the function got a message, and how often somebody has looked at it since. */
export function receivesOf({ receives, deliveries }: LetterView): string {
  if (deliveries === undefined) return `received ${counted(receives, "time")}, looks at it included`;
  const looks = receives - deliveries;
  return `delivered ${counted(deliveries, "time")} to the function${looks > 0 ? `, looked at ${counted(looks, "time")} since` : ""}`;
}

/** Return a letter as a failed task: the record of its task may be late, so the server decides whether it is sent again. */
export function letterTask({ id, actor, sent_at: at, generation = 0 }: LetterView): TaskView {
  return { id, actor, status: "failed", reason: DEAD_LETTER, progress_percent: 0, created_at: at, updated_at: at, generation };
}
