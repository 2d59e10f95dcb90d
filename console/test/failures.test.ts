import { expect, test } from "vitest";
import { addGroups, failureText, groupFailures, kindOf } from "../src/tasks/failures";
import { isSelected } from "../src/tasks/matching";
import { task } from "./tasks";

test.each([
  ["KeyError: 'price'\nmore", "KeyError: 'price'"],
  ["row 17 of 20.5 is bad", "row # of # is bad"],
  ["no order 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "no order #"],
  ["this function has version 08822cf5fe1a of it", "this function has version # of it"],
  ["version 0a8bcf2 and 1234567", "version # and #"],
  ["job run 00bss0ojnopziwff (asya.shop.risk.0000000003) ended", "job run # (asya.shop.risk.#) ended"],
  ["Deadline 2026-11-25T22:38:21.037834Z passed, 5s after", "Deadline # passed, #s after"],
  ["s3://data/part-00017 is not utf8, 250ms late, row17", "s3://data/part-# is not utf#, #ms late, row#"],
  ["version 1.2.3 of x86", "version # of x#"],
  ["ValueError: \u001b[31mred\u0007\tor not\u202e", "ValueError: #[###or not#"],
  [`OSError: ${"disk ".repeat(100)}`, `OSError: ${"disk ".repeat(100)}`.slice(0, 300)],
])("%j is of the kind %j", (text, kind) => expect(kindOf(text)).toBe(kind));

test("failed tasks of one cause are one group, and the largest comes first", () => {
  const failed = (number: number, message: string, actor = "bill") =>
    task(number, { status: "failed", actor, error: { type: "KeyError", message } });
  const groups = groupFailures([failed(5, "order 5"), task(4), failed(3, "order 3"), failed(2, "'price'"), failed(1, "order 1")]);
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
    error: { type: "KeyError", message: "order 7" },
  });
  expect(isSelected(failed, filter, undefined)).toBe(isIn);
});

test("a task is selected from the time of the age on", () => {
  expect(isSelected(task(0), {}, "2026-11-25T12:00:00Z")).toBe(true);
  expect(isSelected(task(-1), {}, "2026-11-25T12:00:00Z")).toBe(false);
});

test("groups of two pages add up", () => {
  const group = { actor: "bill", error: "Timeout", count: 2, first: "3", last: "4", example: "d" };
  const older = { ...group, count: 5, first: "1", last: "2", example: "b" };
  const other = { ...group, actor: "ship", count: 3 };
  expect(addGroups([group, other], [older])).toEqual([{ ...group, count: 7, first: "1" }, other]);
});
