import { expect, test } from "vitest";
import { addGroups, failureText, groupFailures, resolutionText, retryText } from "../src/tasks/failures";
import { isSelected } from "../src/tasks/matching";
import { task } from "./tasks";

test("failed tasks of one cause are one group, and the largest comes first", () => {
  const failed = (number: number, message: string, group?: string) =>
    task(number, {
      status: "failed",
      actor: "bill",
      error: { type: "KeyError", message, mro: [], traceback: "" },
      ...(group === undefined ? {} : { error_group: group }),
    });
  const orders = "KeyError: order #";
  const groups = groupFailures([
    failed(5, "order 5", orders),
    task(4),
    failed(3, "order 3", orders),
    failed(2, "'price'"),
    failed(1, "order 1", orders),
  ]);
  expect(groups.map(({ error, count, example }) => [error, count, example])).toEqual([
    ["KeyError: order #", 3, "task-5"],
    ["KeyError: 'price'", 1, "task-2"],
  ]);
  expect(groups[0]?.first).toBe(task(1).created_at);
});

test("a canceled task tells its reason, and a running one nothing", () => {
  expect(failureText(task(1, { status: "canceled", reason: "Canceled" }))).toBe("Canceled");
  expect(failureText(task(1, { reason: "Canceled" }))).toBe("");
});

test.each([
  [{ error: "keyerror" }, true],
  [{ error: "order #" }, true],
  [{ error: "Timeout" }, false],
  [{ actor: "bill", owner: "ann", tool: "order", roots: true }, true],
  [{ owner: "bob" }, false],
  [{ tool: "other" }, false],
])("the filter %j selects the task: %j", (filter, isIn) => {
  const failed = task(1, {
    status: "failed",
    actor: "bill",
    owner: "ann",
    tool: "order",
    error: { type: "KeyError", message: "order 7", mro: [], traceback: "" },
    error_group: "KeyError: order #",
  });
  expect(isSelected(failed, filter, undefined)).toBe(isIn);
});

test("a task is selected from the time of the age on", () => {
  expect(isSelected(task(0), {}, "2026-11-25T12:00:00Z")).toBe(true);
  expect(isSelected(task(-1), {}, "2026-11-25T12:00:00Z")).toBe(false);
});

test("a retried task says which attempt failed, why, and when the next one is due", () => {
  const error = { type: "KeyError", message: "'price'", mro: [], traceback: "" };
  const retry = { attempt: 2, max_attempts: 5, error, failed_at: "2026-11-25T12:00:00Z" };
  expect(retryText(retry)).toBe("attempt 2 of 5 failed, the next is at work: KeyError: 'price'");
  expect(retryText({ ...retry, next_at: "2026-11-25T12:01:00Z" })).toMatch(
    /^attempt 2 of 5 failed, the next is due at .*: KeyError: 'price'$/,
  );
  const running = task(1, { status: "running", retry, error_group: "KeyError: 'price'" });
  expect(isSelected(running, { retrying: true, error: "price" }, undefined)).toBe(true);
  expect(isSelected(task(1), { retrying: true }, undefined)).toBe(false);
  expect(groupFailures([running])[0]?.error).toBe("KeyError: 'price'");
});

test("groups of two pages add up", () => {
  const group = { actor: "bill", error: "Timeout", count: 2, first: "3", last: "4", example: "d" };
  const older = { ...group, count: 5, first: "1", last: "2", example: "b" };
  const other = { ...group, actor: "ship", count: 3 };
  expect(addGroups([group, other], [older])).toEqual([{ ...group, count: 7, first: "1" }, other]);
});

test("a list of failed tasks has the open ones, and tells what became of the others", () => {
  const settled = task(1, { status: "failed", resolution: { how: "replayed", task: "b", status: "succeeded" } });
  expect(isSelected(settled, { status: "failed" }, undefined)).toBe(false);
  expect(isSelected(settled, { status: "failed", resolved: true }, undefined)).toBe(true);
  expect(isSelected(settled, {}, undefined)).toBe(true);
  expect(groupFailures([settled])).toEqual([]);
  expect(resolutionText({ how: "replayed", status: "succeeded" })).toBe("replayed: succeeded");
  expect(resolutionText({ how: "replayed", status: "failed", is_open: true })).toBe("replayed: failed, open again");
  expect(resolutionText({ how: "dismissed", reason: "a test" })).toBe("dismissed: a test");
});
