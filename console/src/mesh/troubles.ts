/** What is wrong with an actor, as its numbers tell it. */

import type { ActorNumbers } from "../api/operations";
import { counted, duration, rounded } from "../shared/format";

export interface Trouble {
  text: string;
  isBad: boolean;
}

/** Seconds that a message may wait before it is told. */
const OLD_SECONDS = 300;

/** Return the troubles of an actor, the worst first. */
export function troublesOf(actor: ActorNumbers): Trouble[] {
  const { circuit, dead_letters: letters, failing_per_minute: failing, oldest_seconds: oldest, runs } = actor;
  const found: (Trouble | false)[] = [
    circuit === "open" && { text: "circuit open", isBad: true },
    letters > 0 && { text: counted(letters, "dead letter"), isBad: true },
    failing !== null && failing > 0 && { text: `${rounded(failing)} a minute fail`, isBad: true },
    circuit === "half-open" && { text: "circuit half-open", isBad: false },
    oldest !== null && oldest >= OLD_SECONDS && { text: `the oldest waits ${duration(oldest * 1000)}`, isBad: false },
    runs?.is_drained === true && { text: "job runs are stopped", isBad: false },
  ];
  return found.filter((each) => each !== false);
}

/** Return what waits and what is being processed. */
export function countsOf({ waiting, in_flight: atWork }: ActorNumbers): string[] {
  return [`${waiting.toLocaleString("en")} waiting`, `${atWork.toLocaleString("en")} at work`];
}

/** Return the rate of an actor; nothing if it is unknown. */
export function ratesOf({ per_minute: rate }: ActorNumbers): string[] {
  return rate === null ? [] : [`${rounded(rate)} a minute`];
}

/** Return the job runs of a heavy actor, and the envelopes that wait for one. */
export function runsOf({ runs }: ActorNumbers): string[] {
  if (runs === null) return [];
  const parts = [counted(runs.running, "run")];
  if (runs.lingering > 0) parts.push(`${runs.lingering} lingering`);
  if (runs.pending > 0) parts.push(`${runs.pending.toLocaleString("en")} pending`);
  return parts;
}
