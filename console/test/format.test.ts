import { expect, test } from "vitest";
import { now } from "../src/shared/clock";
import { fullTime, shortTime } from "../src/shared/format";

const AT = Date.UTC(2026, 10, 25, 12, 0, 3);
const HOUR = 3_600_000;
const TIME = /^\d\d:\d\d:\d\d(\s[AP]M)?$/i;

test.each([
  [0, true],
  [23 * HOUR, true],
  [-23 * HOUR, true],
  [25 * HOUR, false],
  [-25 * HOUR, false],
  [400 * 24 * HOUR, false],
])("seen %d ms later, a time is without its date: %s", (later, isShort) => {
  expect(TIME.test(shortTime(new Date(AT).toISOString(), AT + later))).toBe(isShort);
});

test("a time of now is without its date, on any day", () => {
  expect(shortTime(new Date(now()).toISOString())).toMatch(TIME);
});

test("what is no time is shown as it is", () => {
  expect([shortTime("soon"), fullTime("soon")]).toEqual(["soon", "soon"]);
});
