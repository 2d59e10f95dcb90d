import { expect, test } from "vitest";
import type { Client } from "../src/api/client";
import { EventParser, follow, type StreamEvent } from "../src/api/stream";

const TEXT = 'retry: 300\n\nevent: status\nid: a\ndata: {"step":\ndata: "received"}\n\n: keepalive\n\nevent: final\nid: b\ndata: {}\n\n';
const EVENTS: StreamEvent[] = [
  { type: "status", id: "a", data: { step: "received" } },
  { type: "final", id: "b", data: {} },
];

test("events are the same however the text is cut", () => {
  for (let cut = 0; cut <= TEXT.length; cut += 1) {
    const parser = new EventParser();
    expect([...parser.push(TEXT.slice(0, cut)), ...parser.push(TEXT.slice(cut))]).toEqual(EVENTS);
  }
});

test("an event that is not whole, or no JSON, is left out", () => {
  expect(new EventParser().push("data: {}\n")).toEqual([]);
  expect(new EventParser().push("data: {\n\n")).toEqual([]);
});

/** A client whose answers are these texts, and which notes what it was asked. */
function clientOf(answers: (string | number)[]): { client: Client; asked: string[] } {
  const asked: string[] = [];
  const open = (path: string): Promise<Response> => {
    asked.push(path);
    const answer = answers.shift() ?? 204;
    return Promise.resolve(typeof answer === "number" ? new Response(null, { status: answer }) : new Response(answer));
  };
  return { client: { open } as unknown as Client, asked };
}

async function all(client: Client): Promise<string[]> {
  const types: string[] = [];
  for await (const event of follow(client, "a/b", new AbortController().signal)) types.push(event.type);
  return types;
}

test("a stream goes on from its last event until the final one", async () => {
  const [first = "", last = ""] = TEXT.split(/(?<=\n\n)(?=: keepalive)/);
  const { client, asked } = clientOf([first, last]);
  expect(await all(client)).toEqual(["status", "final"]);
  expect(asked).toEqual(["/api/v1/mesh/a%2Fb/events", "/api/v1/mesh/a%2Fb/events?last_event_id=a"]);
});

test.each([204, 403, 404])("an answer %i ends the stream", async (status) => {
  const { client, asked } = clientOf([status]);
  expect(await all(client)).toEqual([]);
  expect(asked).toHaveLength(1);
});
