import { expect, test } from "vitest";
import { describeRoute, routeGraph } from "../src/task/route";
import { task } from "./tasks";

const route = { prev: ["check"], curr: "price", next: ["ship"] };
const hop = { generation: 0, actor: "price" };

test("a failed task ends at its actor, after all attempts of this generation", () => {
  const entries = [
    { ...hop, position: 0, attempt: 1 },
    { ...hop, position: 1, attempt: 1 },
    { ...hop, position: 1, attempt: 3 },
    { ...hop, position: 1, attempt: 9, generation: 1 },
  ];
  const graph = routeGraph(task(1, { status: "failed", route }), entries);
  expect(graph.nodes.map(({ actor, state, attempts }) => [actor, state, attempts])).toEqual([
    ["check", "passed", 1],
    ["price", "failed", 3],
    ["ship", "next", 0],
  ]);
  expect(graph.edges.map(({ state }) => state)).toEqual(["failed", "next"]);
  expect(describeRoute(graph)).toBe("check (passed), price (ended here), ship (to come)");
});

test("a running task is at its actor, and a succeeded one has passed all", () => {
  expect(routeGraph(task(1, { route }), []).nodes.map(({ state }) => state)).toEqual(["passed", "here", "next"]);
  const done = { prev: ["check", "price"], curr: "ship", next: [] };
  expect(routeGraph(task(1, { status: "succeeded", route: done }), []).nodes.every(({ state }) => state === "passed")).toBe(true);
});

test("a route that has come to its end has no actor to be at", () => {
  const graph = routeGraph(task(1, { status: "succeeded", route: { prev: ["check"], curr: "", next: [] } }), []);
  expect(graph.nodes).toHaveLength(1);
});
