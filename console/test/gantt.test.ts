import { expect, test } from "vitest";
import type { TimelineEntry } from "../src/api/types";
import { ganttOf, percentOf } from "../src/task/gantt";

const AT = (seconds: number) => new Date(Date.UTC(2026, 10, 25) + seconds * 1000).toISOString();
const NOW = Date.UTC(2026, 10, 25, 0, 1);

function hop(position: number, received?: number, processing?: number, completed?: number): TimelineEntry {
  return {
    generation: 0,
    position,
    attempt: 1,
    actor: "a",
    ...(received === undefined ? {} : { received_at: AT(received) }),
    ...(processing === undefined ? {} : { processing_at: AT(processing) }),
    ...(completed === undefined ? {} : { completed_at: AT(completed) }),
  };
}

function seconds(timeline: TimelineEntry[], hasEnded = false): number[][] {
  const { bars, from } = ganttOf(timeline, AT(0), NOW, hasEnded);
  return bars.map((bar) => [bar.queuedFrom, bar.from, bar.until].map((time) => (time - from) / 1000));
}

test("a hop waits from the end of the one before until it begins", () => {
  expect(seconds([hop(0, 2, 3, 5), hop(1, 9, 10, 12)])).toEqual([
    [0, 3, 5],
    [5, 10, 12],
  ]);
});

test("a hop that has not ended lasts until now, and in a task that has ended it has no length", () => {
  expect(seconds([hop(0, 2, 3)])).toEqual([[0, 3, 60]]);
  expect(seconds([hop(0, 2, 3)], true)).toEqual([[0, 3, 3]]);
});

test("missing and disordered times do not turn a bar around", () => {
  for (const timeline of [[hop(0)], [hop(0, 5, 4, 1)], [hop(0, 1, 2, 9), hop(1, 3, 4, 5)]]) {
    for (const [queued = 0, from = 0, until = 0] of seconds(timeline)) {
      expect(queued).toBeLessThanOrEqual(from);
      expect(from).toBeLessThanOrEqual(until);
    }
  }
});

test("places are parts of the whole", () => {
  const gantt = ganttOf([hop(0, 0, 5, 10)], AT(0), NOW, true);
  expect(percentOf(gantt.from, gantt)).toBe(0);
  expect(percentOf(gantt.from + 5000, gantt)).toBe(50);
  expect(percentOf(gantt.until, gantt)).toBe(100);
});
