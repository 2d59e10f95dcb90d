import { expect, test } from "vitest";
import type { Page, TaskView } from "../src/api/types";
import { TaskFeed } from "../src/tasks/feed";
import { ids, task } from "./tasks";

type Query = Record<string, string | undefined>;

/** A gateway with these tasks; its cursors are places from the end, so that new tasks shift no page. */
class Gateway {
  queries: Query[] = [];
  constructor(public newest: TaskView[]) {}

  tasks(query: Query): Promise<Page<TaskView>> {
    this.queries.push(query);
    const chosen = this.newest.filter((each) => query["status"] === undefined || each.status === query["status"]);
    const start = query["cursor"] === undefined ? 0 : chosen.length - Number(query["cursor"]);
    const end = start + Number(query["limit"]);
    const more = end < chosen.length ? { next_cursor: String(chosen.length - end) } : {};
    return Promise.resolve({ items: chosen.slice(start, end), ...more });
  }
}

function descending(from: number, to: number): TaskView[] {
  return Array.from({ length: from - to + 1 }, (_, index) => task(from - index));
}

const NOW = Date.UTC(2026, 10, 25, 13);

test("a round shows new tasks and changes of those on the screen", async () => {
  const gateway = new Gateway(descending(300, 1));
  const feed = new TaskFeed(gateway, {}, NOW);
  await feed.refresh(0, 20);
  await feed.more();
  gateway.newest = [task(301), ...gateway.newest];
  gateway.newest[151] = task(150, { status: "failed" });
  const { tasks } = await feed.refresh(140, 170);
  expect(tasks[0]?.id).toBe("task-301");
  expect(tasks.find(({ id }) => id === "task-150")?.status).toBe("failed");
  expect(tasks).toHaveLength(201);
});

test("a gap of more tasks than a page has is closed", async () => {
  const gateway = new Gateway(descending(50, 1));
  const feed = new TaskFeed(gateway, {}, NOW);
  await feed.refresh(0, 20);
  gateway.newest = descending(400, 1);
  const { tasks } = await feed.refresh(0, 20);
  expect(ids(tasks)).toEqual(ids(descending(400, 1)));
});

test("a filter that the gateway does not know is applied here, over as many pages as it takes", async () => {
  const gateway = new Gateway(
    descending(1000, 1).map((each, index) => (index % 10 === 0 ? { ...each, actor: "bill" } : each)),
  );
  const { tasks, hasMore } = await new TaskFeed(gateway, { actor: "bill" }, NOW).refresh(0, 20);
  expect(tasks.every(({ actor }) => actor === "bill")).toBe(true);
  expect(tasks.length).toBeGreaterThanOrEqual(50);
  expect(hasMore).toBe(true);
  expect(gateway.queries[0]).toEqual({ actor: "bill", limit: "100" });
});

test("a list without a task is read again", async () => {
  const gateway = new Gateway([]);
  const feed = new TaskFeed(gateway, { status: "failed" }, NOW);
  expect((await feed.refresh(0, 20)).tasks).toEqual([]);
  gateway.newest = [task(1, { status: "failed" })];
  expect(ids((await feed.refresh(0, 20)).tasks)).toEqual(["task-1"]);
});

test("all tasks are 10,000 at most", async () => {
  const { tasks, hasMore, isFull } = await new TaskFeed(new Gateway(descending(10_250, 1)), {}, NOW).all();
  expect(tasks).toHaveLength(10_000);
  expect([hasMore, isFull]).toEqual([false, true]);
});

test("an unchanged list is the same object, so that nothing is drawn again", async () => {
  const feed = new TaskFeed(new Gateway(descending(10, 1)), {}, NOW);
  const before = await feed.refresh(0, 20);
  expect(await feed.refresh(0, 20)).toBe(before);
});

test("an age becomes a time, which stays the same for all pages", async () => {
  const gateway = new Gateway(descending(300, 1));
  const feed = new TaskFeed(gateway, { age: "2h" }, NOW);
  await feed.refresh(0, 20);
  await feed.more();
  expect(new Set(gateway.queries.map((query) => query["since"]))).toEqual(new Set(["2026-11-25T11:00:00.000Z"]));
});
