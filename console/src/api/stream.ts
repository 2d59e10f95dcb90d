/** Follows a task by its events (Server-Sent Events), read with `fetch`: EventSource sends no header. */

import { parseAnswer } from "./answer";
import { CallError, type Client, taskPath } from "./client";

export interface StreamEvent {
  type: string;
  id: string;
  data: unknown;
}

/** Takes text in pieces of any size, and gives the events that are whole. */
export class EventParser {
  private rest = "";

  push(text: string): StreamEvent[] {
    const blocks = (this.rest + text).replace(/\r\n?/g, "\n").split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.flatMap(eventOf);
  }
}

function eventOf(block: string): StreamEvent[] {
  const fields: Record<string, string> = {};
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === "data") data.push(value);
    else fields[name] = value;
  }
  if (data.length === 0) return []; // a comment that keeps the connection alive, or the pause before a retry
  try {
    return [{ type: fields["event"] ?? "message", id: fields["id"] ?? "", data: parseAnswer(data.join("\n")) }];
  } catch {
    return [];
  }
}

const PAUSE_MILLISECONDS = 300;
const FAILED_MILLISECONDS = 3000;

/** Yield the events of a task until its last one. A broken answer is asked for again, from the last event on. */
export async function* follow(client: Client, id: string, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  let cursor = "";
  while (!signal.aborted) {
    const query = cursor === "" ? "" : `?${new URLSearchParams({ last_event_id: cursor })}`;
    let pause = PAUSE_MILLISECONDS;
    try {
      const response = await client.open(`${taskPath(id)}/events${query}`, { signal });
      if (response.status === 204 || response.status === 404 || response.status === 403) return;
      if (!response.ok || response.body === null) throw new CallError(response.status, "", "the stream was refused");
      const parser = new EventParser();
      for await (const text of texts(response.body)) {
        for (const event of parser.push(text)) {
          cursor = event.id || cursor;
          yield event;
          if (event.type === "final") return;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof CallError) && !(error instanceof TypeError)) throw error;
      pause = FAILED_MILLISECONDS;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function* texts(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
