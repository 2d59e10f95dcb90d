import { expect, test } from "vitest";
import { actOnAll, answerAll, applies, asksSomething, placesOf, whyNoRedrive } from "../src/actions/bulk";
import { CallError } from "../src/api/client";
import type { Replayed, TaskView } from "../src/api/types";
import { task } from "./tasks";

const slice = new CallError(409, "slice", "it is a slice of a set");

/** A gateway in which some tasks are slices, and a canceled task is refused once. */
class Gateway {
  replays: [string, boolean][] = [];
  canceled: string[] = [];
  dismissed: [string, string][] = [];
  constructor(private readonly parents: Record<string, string> = {}) {}

  task(id: string): Promise<TaskView> {
    const parent = this.parents[id];
    return Promise.resolve(task(0, { id, ...(parent === undefined ? {} : { parent_id: parent }) }));
  }

  cancel(id: string): Promise<void> {
    if (id === "task-2") return Promise.reject(new CallError(503, "busy", "try again", "Soon."));
    this.canceled.push(id);
    return Promise.resolve();
  }

  replay(id: string, { failed_only = false } = {}): Promise<Replayed> {
    if (id in this.parents) return Promise.reject(slice);
    this.replays.push([id, failed_only]);
    return Promise.resolve({ id: `${id}-again`, replay_of: id, source: "" });
  }

  dismiss(id: string, wish: { reason: string } | { undo: true }): Promise<void> {
    this.dismissed.push([id, "reason" in wish ? wish.reason : "undo"]);
    return Promise.resolve();
  }

  redrive(tasks: { id: string; actor: string }[]) {
    return Promise.resolve(tasks.map(({ id, actor }) => ({ id, problem: actor ? "" : "no dead letter" })));
  }
}

const failed = (number: number, more: Partial<TaskView> = {}) => task(number, { status: "failed", ...more });

test("a task that cannot be canceled does not stop the others", async () => {
  const gateway = new Gateway();
  const seen: number[] = [];
  const outcomes = await actOnAll(gateway, "cancel", [task(3), task(2), task(1)], ({ done }) => seen.push(done));
  expect(gateway.canceled.sort()).toEqual(["task-1", "task-3"]);
  expect(outcomes.find(({ id }) => id === "task-2")?.problem).toBe("try again Soon.");
  expect(seen).toEqual([1, 2, 3]);
});

test("tasks are replayed oldest first, each from where it failed", async () => {
  const gateway = new Gateway();
  await actOnAll(gateway, "replay", [failed(2), failed(1)], () => undefined);
  expect(gateway.replays).toEqual([
    ["task-1", false],
    ["task-2", false],
  ]);
});

test("failed slices run again with their set, once", async () => {
  const gateway = new Gateway({ "task-1": "origin", "task-2": "origin" });
  const slices = [failed(2, { parent_id: "origin" }), failed(1, { parent_id: "origin" })];
  const origin = failed(0, { id: "origin", reason: "SliceFailed" });
  const outcomes = await actOnAll(gateway, "replay", [...slices, origin], () => undefined);
  expect(gateway.replays).toEqual([["origin", true]]);
  expect(outcomes.map(({ done }) => done)).toEqual(["origin-again", "origin-again", "origin-again"]);
});

test("a set within a set is repeated by the outer one", async () => {
  const gateway = new Gateway({ "task-1": "inner", inner: "outer" });
  await actOnAll(gateway, "replay", [failed(1, { parent_id: "inner" })], () => undefined);
  expect(gateway.replays).toEqual([["outer", true]]);
});

test("dead letters are redriven together, and each has its answer", async () => {
  const outcomes = await actOnAll(new Gateway(), "redrive", [failed(2, { actor: "bill" }), failed(1)], () => undefined);
  expect(outcomes.map(({ problem }) => problem)).toEqual(["no dead letter", ""]);
});

test("only failed tasks run again, and only tasks at work are canceled", () => {
  expect(applies("cancel", task(1))).toBe(true);
  expect(applies("cancel", failed(1))).toBe(false);
  expect(applies("replay", failed(1))).toBe(true);
  expect(applies("redrive", task(1))).toBe(false);
  expect(applies("redrive", failed(1, { reason: "DeliveryExhausted" }))).toBe(true);
  expect(whyNoRedrive(failed(1, { reason: "RuntimeError" }))).toMatch(/it ended as RuntimeError/);
  expect(whyNoRedrive(task(1))).toBe("");
});

test("one answer reaches the pause that was read, and a refusal stops no other", async () => {
  const sent: [string, string, string][] = [];
  const client = {
    resume: (id: string, input: string, since: string): Promise<void> => {
      if (id === "task-2") return Promise.reject(new CallError(409, "not_paused", "it is in a later pause"));
      sent.push([id, input, since]);
      return Promise.resolve();
    },
  };
  const paused = (number: number, more: Partial<TaskView> = {}): TaskView =>
    task(number, { status: "paused", pause: { prompt: "Pay?", fields: [], since: `at-${number}` }, ...more });
  const outcomes = await answerAll(client, [paused(3), paused(2), paused(1)], '{"total":12345678901234567.89}', () => undefined);
  expect(sent.sort()).toEqual([
    ["task-1", '{"total":12345678901234567.89}', "at-1"],
    ["task-3", '{"total":12345678901234567.89}', "at-3"],
  ]);
  expect(outcomes.filter(({ problem }) => problem !== "").map(({ id }) => id)).toEqual(["task-2"]);
  expect([paused(1), task(2), paused(3, { pause: { prompt: "", fields: [], since: "", until: "soon" } })].map(asksSomething)).toEqual([
    true,
    false,
    false,
  ]);
  expect(placesOf([paused(1, { actor: "b" }), paused(2, { actor: "a" }), paused(3, { actor: "b" })])).toEqual(["a", "b"]);
});

test("open failures are dismissed with the reason, and settled ones are left out", async () => {
  const gateway = new Gateway();
  const settled = failed(1, { resolution: { how: "replayed", task: "b", status: "succeeded" } });
  const again = failed(2, { resolution: { how: "replayed", task: "b", status: "failed", is_open: true } });
  for (const action of ["replay", "dismiss"] as const) {
    expect(applies(action, settled)).toBe(false);
    expect(applies(action, again)).toBe(true);
  }
  await actOnAll(gateway, "dismiss", [again], () => undefined, "a test");
  expect(gateway.dismissed).toEqual([["task-2", "a test"]]);
});

test("a task that somebody else has replayed meanwhile is done", async () => {
  const gateway = new Gateway();
  gateway.replay = () => Promise.reject(new CallError(409, "replayed", "it was replayed as b"));
  const [outcome] = await actOnAll(gateway, "replay", [failed(1)], () => undefined);
  expect(outcome).toEqual({ id: "task-1", done: "replayed before", problem: "" });
});
