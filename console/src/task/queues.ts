import { hasEnded, isPaused, type TaskView } from "../api/types";

/** Return the actors on whose queues the envelopes of tasks may wait: where each was last, and where it goes next. */
export function queuesOf(tasks: readonly TaskView[]): string[] {
  const found = tasks
    .filter(({ status }) => !hasEnded(status) && !isPaused(status))
    .flatMap(({ actor, route }) => [actor ?? "", route?.curr ?? "", route?.next[0] ?? ""]);
  return [...new Set(found)].filter((name) => name !== "").sort();
}
