import { expect, test } from "vitest";
import { ageSeconds, addressOf, parseView, type View } from "../src/view";

const VIEWS: [string, View][] = [
  ["#/tasks", { page: "tasks", filter: {} }],
  [
    "#/tasks?status=failed&actor=bill&error=KeyError%3A+%27price%27&age=2h&roots=true&retrying=true",
    { page: "tasks", filter: { status: "failed", actor: "bill", error: "KeyError: 'price'", age: "2h", roots: true, retrying: true } },
  ],
  ...["order 7", "é", "日本", "x+y", "a:b", "a&b=c;d", "...", "'a'", '"a"', "{id}", "<b>", "*", "a|b", " a ", "\u200b"].map(
    (id): [string, View] => [`#/tasks/${encodeURIComponent(id)}`, { page: "task", id, tab: "overview" }],
  ),
  ["#/tasks/order-1?show=payloads&hop=3", { page: "task", id: "order-1", tab: "payloads", hop: 3 }],
  ["#/mesh", { page: "mesh" }],
  ["#/mesh?tool=order", { page: "mesh", tool: "order" }],
  ["#/mesh/price-order", { page: "actor", actor: "price-order", tab: "overview" }],
  ["#/mesh/price-order?show=logs&age=24h", { page: "actor", actor: "price-order", tab: "logs", age: "24h" }],
  ["#/dead-letters", { page: "dead-letters" }],
  ["#/dead-letters?actor=x-sump", { page: "dead-letters", actor: "x-sump" }],
  ["#/runs?actor=crunch", { page: "runs", actor: "crunch" }],
  ["#/runs/asya.shop.crunch.1", { page: "run", id: "asya.shop.crunch.1", tab: "envelopes" }],
  ["#/runs/a%2Fb?show=logs&source=driver", { page: "run", id: "a/b", tab: "logs", source: "driver" }],
];

test.each(VIEWS)("%s names a view, and the view has this address", (address, view) => {
  expect(parseView(address)).toEqual(view);
  expect(addressOf(view)).toBe(address);
});

test.each([
  ["", { page: "tasks", filter: {} }],
  ["#/elsewhere", { page: "tasks", filter: {} }],
  ["#/tasks?status=lost&age=soon&roots=1", { page: "tasks", filter: {} }],
  ["#/tasks/%zz?show=nothing&hop=-1", { page: "task", id: "%zz", tab: "overview" }],
  ["#/mesh/a?show=nothing&age=soon", { page: "actor", actor: "a", tab: "overview" }],
  ["#/runs/1?show=nothing&source=me", { page: "run", id: "1", tab: "envelopes" }],
] as [string, View][])("what %s does not name is left out", (address, view) => {
  expect(parseView(address)).toEqual(view);
});

test("an age is a number with its unit", () => {
  expect(["90s", "30m", "2h", "7d"].map(ageSeconds)).toEqual([90, 1800, 7200, 604_800]);
});
