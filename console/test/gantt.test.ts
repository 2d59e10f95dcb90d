import { expect, test } from "vitest";
import type { TimelineEntry } from "../src/api/types";
import { ganttOf, percentOf, stageBarsOf } from "../src/task/gantt";

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

test("a stage lasts from its submission, and its tasks fill it from the left", () => {
  const stages = [
    { stage: 1, tasks: 8, done: 2, began_at: AT(20) },
    { stage: 2, tasks: 0, began_at: AT(1) },
    { stage: 3, tasks: 4, done: 4 },
  ];
  const run = { run_id: "r", job_run_id: "j", state: "RUNNING", at: AT(30), envelopes: 1, stages };
  const [bar] = ganttOf([{ ...hop(0, 2, 10), run }], AT(0), NOW, false).bars;
  const bars = stageBarsOf(bar!).map((each) => [each.from, each.doneUntil, each.until].map((at) => (at - Date.parse(AT(0))) / 1000));
  expect(bars).toEqual([
    [20, 30, 60],
    [10, 10, 60],
    [10, 60, 60],
  ]);
  expect(stageBarsOf({ ...bar!, entry: hop(0, 2, 10) })).toEqual([]);
});
