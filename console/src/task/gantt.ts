/** When a task was on queues, and when it was at work. */

import type { StageNote, TimelineEntry } from "../api/types";

export interface Bar {
  entry: TimelineEntry;
  /** When the wait for this attempt began, when the actor began, and when it ended; milliseconds since 1970. */
  queuedFrom: number;
  from: number;
  until: number;
  /** Whether the attempt has ended. */
  isDone: boolean;
}

export interface Gantt {
  bars: Bar[];
  from: number;
  until: number;
}

/** Return the bars of a timeline. An attempt that has not ended lasts until `now`. */
export function ganttOf(timeline: readonly TimelineEntry[], createdAt: string, now: number, hasEnded: boolean): Gantt {
  const created = Date.parse(createdAt);
  let free = created;
  const bars = timeline.map((entry): Bar => {
    const received = timeOf(entry.received_at) ?? timeOf(entry.processing_at) ?? timeOf(entry.completed_at) ?? free;
    const began = timeOf(entry.processing_at) ?? received;
    const ended = timeOf(entry.completed_at);
    const until = Math.max(began, ended ?? (hasEnded ? began : now));
    const bar = { entry, queuedFrom: Math.min(free, began), from: began, until, isDone: ended !== undefined };
    free = until;
    return bar;
  });
  const until = Math.max(created + 1, ...bars.map((bar) => bar.until));
  return { bars, from: Math.min(created, ...bars.map((bar) => bar.queuedFrom)), until };
}

export interface StageBar {
  stage: StageNote;
  /** When Spark submitted the stage, up to where its tasks are done, and when it ended or is; milliseconds since 1970. */
  from: number;
  doneUntil: number;
  until: number;
}

/** Return the bars of the Spark stages that the job run of an attempt has reported last. */
export function stageBarsOf({ entry, from, until }: Bar): StageBar[] {
  return (entry.run?.stages ?? []).map((stage): StageBar => {
    const began = Math.min(until, Math.max(from, timeOf(stage.began_at) ?? from));
    const share = Math.min(1, (stage.done ?? 0) / Math.max(1, stage.tasks ?? 0));
    return { stage, from: began, doneUntil: began + share * (until - began), until };
  });
}

/** Return the place of a time within the whole, in percent. */
export function percentOf(time: number, { from, until }: Gantt): number {
  return (100 * (time - from)) / Math.max(1, until - from);
}

function timeOf(at: string | undefined): number | undefined {
  const time = at === undefined ? Number.NaN : Date.parse(at);
  return Number.isNaN(time) ? undefined : time;
}
