import { expect, test } from "vitest";
import type { TaskView } from "../src/api/types";
import { TaskCollection } from "../src/tasks/collection";
import { ids, task } from "./tasks";

const all = (): boolean => true;

function started(): TaskCollection {
  const collection = new TaskCollection();
  collection.append({ items: [task(9), task(8)], next_cursor: "after-8" }, all);
  collection.append({ items: [task(7), task(6)], next_cursor: "after-6" }, all);
  return collection;
}

test("pages follow each other, and the last one has no cursor", () => {
  const collection = started();
  expect(collection.next).toBe("after-6");
  collection.append({ items: [task(5)] }, all);
  expect(ids(collection.tasks)).toEqual(["task-9", "task-8", "task-7", "task-6", "task-5"]);
  expect(collection.hasMore).toBe(false);
});

test("new tasks come first, and those that a page no longer has room for stay", () => {
  const collection = started();
  expect(collection.refresh({ items: [task(10), task(9)], next_cursor: "after-9" }, undefined, all)).toBe(true);
  expect(ids(collection.tasks)).toEqual(["task-10", "task-9", "task-8", "task-7", "task-6"]);
});

test("a task that has left the list is removed, and an older one is not", () => {
  const collection = started();
  collection.refresh({ items: [task(9), task(7)], next_cursor: "after-7" }, undefined, all);
  expect(ids(collection.tasks)).toEqual(["task-9", "task-7", "task-6"]);
});

test("a page that was read again changes and removes its own tasks only", () => {
  const collection = started();
  collection.append({ items: [task(5), task(4), task(3)], next_cursor: "after-3" }, all);
  collection.refresh({ items: [task(5), task(3, { status: "failed" })], next_cursor: "after-3" }, "after-6", all);
  expect(ids(collection.tasks)).toEqual(["task-9", "task-8", "task-7", "task-6", "task-5", "task-3"]);
  expect(collection.tasks.at(-1)?.status).toBe("failed");
});

test("a page that meets no known task tells so", () => {
  const collection = started();
  expect(collection.refresh({ items: [task(30), task(29)], next_cursor: "after-29" }, undefined, all)).toBe(false);
});

test("an empty page with a cursor removes nothing", () => {
  const collection = started();
  collection.refresh({ items: [], next_cursor: "later" }, "after-8", all);
  expect(collection.tasks).toHaveLength(4);
});

test("the array is the same while no task changes", () => {
  const collection = started();
  const before = collection.tasks;
  collection.refresh({ items: [task(9), task(8)], next_cursor: "after-8" }, undefined, all);
  expect(collection.tasks).toBe(before);
});

test("the pages between two rows are those whose tasks are there", () => {
  const collection = started();
  collection.append({ items: [task(5), task(4)], next_cursor: "after-4" }, all);
  expect(collection.cursorsBetween(0, 1)).toEqual(["after-8"]);
  expect(collection.cursorsBetween(4, 5)).toEqual(["after-6"]);
  expect(collection.cursorsBetween(0, 5)).toEqual(["after-8", "after-6"]);
});

test("tasks of one moment have an order", () => {
  const at = task(1).created_at;
  const collection = new TaskCollection();
  const twins: TaskView[] = [task(1, { id: "a", created_at: at }), task(1, { id: "b", created_at: at })];
  collection.append({ items: twins }, all);
  expect(ids(collection.tasks)).toEqual(["b", "a"]);
});
