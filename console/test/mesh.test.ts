import { expect, test } from "vitest";
import type { ActorNumbers, LetterView, MeshNumbers, TaskView } from "../src/api/types";
import { meshGraph } from "../src/mesh/graph";
import { receivesOf, whyOf } from "../src/mesh/letters";
import { isMetric } from "../src/shared/metrics";
import { queuesOf } from "../src/task/queues";
import { runsOf, troublesOf } from "../src/mesh/troubles";

function actor(name: string, more: Partial<ActorNumbers> = {}): ActorNumbers {
  return {
    name,
    kind: "handler",
    waiting: 0,
    in_flight: 0,
    dead_letters: 0,
    oldest_seconds: null,
    per_minute: null,
    failing_per_minute: null,
    circuit: null,
    open_circuit: null,
    runs: null,
    not_read: null,
    ...more,
  };
}

function mesh(names: string[], more: Partial<MeshNumbers> = {}): MeshNumbers {
  return { namespace: "shop", at: "", actors: names.map((name) => actor(name)), edges: [], tools: [], ...more };
}

const SHOP = mesh(["check", "price", "refund", "lonely", "x-sink"], {
  edges: [
    { from: "check", to: "price", tool: "order" },
    { from: "check", to: "price", tool: "quote" },
    { from: "price", to: "x-sink", tool: "order" },
    { from: "price", to: "refund" },
  ],
  tools: [
    { name: "order", route: ["check", "price"] },
    { name: "quote", route: ["check", "price"] },
  ],
});

function ends(graph: ReturnType<typeof meshGraph>): string[] {
  return graph.lines.map(({ from, to, tools }) => `${from} > ${to}: ${tools.join("+")}`);
}

test("the graph has each actor and tool once, and a line for each pair", () => {
  const graph = meshGraph(SHOP);
  expect(graph.nodes.map(({ name }) => name).sort()).toEqual(
    ["check", "lonely", "order", "price", "quote", "refund", "x-sink"],
  );
  expect(ends(graph)).toEqual([
    "tool order > check: order",
    "tool quote > check: quote",
    "check > price: order+quote",
    "price > x-sink: order",
    "price > refund: ",
  ]);
});

test("a queue that is not read is the worst trouble, with its repair", () => {
  const unread = { reason: "event source mapping disabled", repair: "aws lambda …" };
  expect(troublesOf(actor("label", { not_read: unread, dead_letters: 1 }))).toEqual([
    { text: "not read", isBad: true, detail: "event source mapping disabled", repair: "aws lambda …" },
    { text: "1 dead letter", isBad: true },
  ]);
});

test("an open circuit has its error and the time of the next call", () => {
  const open = { since: null, next_call_at: "2026-11-25T23:10:03Z", error: "ConnectionError: no answer", failures: 3, window: 60 };
  const [trouble] = troublesOf(actor("stock", { circuit: "open", open_circuit: open }));
  expect(trouble?.text).toBe("circuit open");
  expect(trouble?.detail).toMatch(/^after ConnectionError: no answer, next call /);
});

test("an envelope may wait where it was last and where it goes next", () => {
  const task = { id: "a", progress_percent: 0, created_at: "", updated_at: "", generation: 0 } as const;
  const running = { ...task, status: "running", actor: "split", route: { prev: [], curr: "split", next: ["label", "x"] } } as const;
  const ended = { ...task, status: "succeeded", actor: "gather" } as const;
  expect(queuesOf([running as unknown as TaskView, ended])).toEqual(["label", "split"]);
});

test("a tool and an actor of the same name are two nodes", () => {
  const graph = meshGraph(mesh(["order"], { tools: [{ name: "order", route: ["order"] }] }));
  expect(graph.nodes.map(({ id, isTool }) => [id, isTool])).toEqual([["tool order", true], ["order", false]]);
});

test("with a tool the graph is its route", () => {
  const graph = meshGraph(SHOP, "order");
  expect(graph.nodes.map(({ name }) => name)).toEqual(["order", "check", "price", "x-sink"]);
});

test("in a large mesh the lines to the end of all routes are left out", () => {
  const names = Array.from({ length: 40 }, (_, number) => `actor-${number}`);
  const edges = names.map((from) => ({ from, to: "x-sink", tool: "all" }));
  const large = mesh([...names, "x-sink"], { edges, tools: [{ name: "all", route: ["actor-0"] }] });
  expect(meshGraph(large).lines.map(({ to }) => to)).toEqual(["actor-0"]);
  expect(meshGraph(large, "all").lines).toHaveLength(41);
});

test("an edge to an actor without numbers has a node", () => {
  const graph = meshGraph(mesh(["a"], { edges: [{ from: "a", to: "gone" }] }));
  expect(graph.nodes.map(({ id, actor: numbers }) => [id, numbers !== undefined])).toEqual([["a", true], ["gone", false]]);
});

const WRONG: [Partial<ActorNumbers>, string][] = [
  [{ circuit: "open" }, "circuit open"],
  [{ circuit: "half-open" }, "circuit half-open"],
  [{ dead_letters: 1 }, "1 dead letter"],
  [{ failing_per_minute: 0.4 }, "0.4 a minute fail"],
  [{ oldest_seconds: 300 }, "the oldest waits 5 min 0 s"],
  [{ runs: { pending: 0, running: 0, lingering: 0, is_drained: true } }, "job runs are stopped"],
];

test.each(WRONG)("%j is a trouble", (more, text) => {
  expect(troublesOf(actor("a", more)).map((each) => each.text)).toEqual([text]);
});

test("an actor that works has no trouble", () => {
  const fine: Partial<ActorNumbers> = { waiting: 900, circuit: "closed", failing_per_minute: 0, oldest_seconds: 299 };
  expect(troublesOf(actor("a", fine))).toEqual([]);
});

test("the worst is told first", () => {
  const found = troublesOf(actor("a", { oldest_seconds: 4000, circuit: "open", dead_letters: 3 }));
  expect(found.map(({ text, isBad }) => [text, isBad])).toEqual([
    ["circuit open", true],
    ["3 dead letters", true],
    ["the oldest waits 1 h 6 min", false],
  ]);
});

test("a heavy actor has runs, and says which linger and what waits for them", () => {
  const runs = { pending: 1200, running: 2, lingering: 1, is_drained: false };
  expect(runsOf(actor("crunch", { runs }))).toEqual(["2 runs", "1 lingering", "1,200 pending"]);
  expect(runsOf(actor("crunch", { runs: { ...runs, pending: 0, lingering: 0, running: 1 } }))).toEqual(["1 run"]);
  expect(runsOf(actor("light"))).toEqual([]);
});

function letter(more: Partial<LetterView> = {}): LetterView {
  return { actor: "a", id: "1", message_id: "1", sent_at: "", receives: 1, body: "", size: 0, ...more };
}

test("a line of metrics has no message", () => {
  expect(isMetric('{"_aws":{"Timestamp":1},"Received":[1]}')).toBe(true);
  expect(isMetric('{"_aws":{},"message":"kept"}')).toBe(false);
  expect(isMetric('said "_aws"')).toBe(false);
  expect(isMetric('{"message":"handler failed"}')).toBe(false);
});

test("a dead letter says why it is one", () => {
  expect(whyOf(letter({ error: { type: "KeyError", message: "'price'" } }))).toBe("KeyError: 'price'");
  expect(whyOf(letter({ reason: "PolicyExhausted" }))).toBe("PolicyExhausted");
  expect(whyOf(letter())).toBe("no reason is known");
});

test("a dead letter tells deliveries to the function from looks at it", () => {
  expect(receivesOf(letter({ receives: 4, deliveries: 1 }))).toBe("delivered 1 time to the function, looked at 3 times since");
  expect(receivesOf(letter({ receives: 5, deliveries: 5 }))).toBe("delivered 5 times to the function");
  expect(receivesOf(letter({ receives: 2 }))).toBe("received 2 times, looks at it included");
});
