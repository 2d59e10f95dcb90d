/** What is wrong with an actor, as its numbers tell it. */

import type { ActorNumbers } from "../api/types";
import { counted, duration, rounded, shortTime } from "../shared/format";

export interface Trouble {
  text: string;
  isBad: boolean;
  /** What the text leaves out, because the graph has no room for it. */
  detail?: string;
  /** What to type, or what to do. */
  repair?: string;
}

/** Seconds that a message may wait before it is told. */
const OLD_SECONDS = 300;

/** Return the troubles of an actor, the worst first. */
export function troublesOf(actor: ActorNumbers): Trouble[] {
  const { circuit, dead_letters: letters, failing_per_minute: failing, oldest_seconds: oldest, runs, not_read: unread } = actor;
  const found: (Trouble | false)[] = [
    unread != null && { text: "not read", isBad: true, detail: unread.reason, repair: unread.repair },
    circuit === "open" && { text: "circuit open", isBad: true, ...causeOf(actor) },
    letters > 0 && { text: counted(letters, "dead letter"), isBad: true },
    failing !== null && failing > 0 && { text: `${rounded(failing)} a minute fail`, isBad: true },
    circuit === "half-open" && { text: "circuit half-open", isBad: false, ...causeOf(actor) },
    oldest !== null && oldest >= OLD_SECONDS && { text: `the oldest waits ${duration(oldest * 1000)}`, isBad: false },
    runs?.is_drained === true && { text: "job runs are stopped", isBad: false },
  ];
  return found.filter((each) => each !== false);
}

function causeOf({ open_circuit: circuit }: ActorNumbers): { detail?: string } {
  if (circuit == null) return {};
  const since = circuit.since === null ? [] : [`since ${shortTime(circuit.since)}`];
  const cause = circuit.error === "" ? [] : [`after ${circuit.error}`];
  return { detail: [...since, ...cause, `next call ${shortTime(circuit.next_call_at)}`].join(", ") };
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
