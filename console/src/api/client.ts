/** Calls the gateway through the console's server. */

import { parseAnswer } from "./answer";
import type { ActorDetails, FailureGroup, HopPayloads, KeptHop, LetterPage, LogLine, LogPage, MeshInfo, MeshNumbers, Page, RedriveOutcome, Replayed, RunDetails, RunPage, SetView, TaskView, TimelineEntry } from "./types";

const SECRET_HEADER = "x-asya-console-secret";

/** A call that was refused or not answered. */
export class CallError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly advice = "",
    readonly fields: Record<string, string> = {},
  ) {
    super(message);
  }
}

type Query = Record<string, string | undefined>;

function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Return the value of a body; undefined for one that is no JSON. */
function valueOf(body: string): unknown {
  try {
    return parseAnswer(body);
  } catch {
    return undefined;
  }
}

/** Return the error of an answer: in the form of the gateway (`error`) or of API Gateway (`message`). */
function errorOf(status: number, body: unknown): CallError {
  const given = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  if (typeof given["error"] === "object" && given["error"] !== null) {
    const error = given["error"] as Record<string, unknown>;
    const problems = Array.isArray(error["fields"]) ? (error["fields"] as { name?: unknown; message?: unknown }[]) : [];
    const fields = Object.fromEntries(problems.map(({ name, message }) => [text(name), text(message)]));
    return new CallError(status, text(error["code"]), text(error["message"]), text(error["advice"]), fields);
  }
  return new CallError(status, "", text(given["message"]) || `the gateway answered ${status}`);
}

/** The calls that the page makes. */
export class Client {
  constructor(private readonly secret: string) {}

  /** Make a call and return its answer unread. */
  async open(path: string, init: RequestInit = {}): Promise<Response> {
    try {
      return await fetch(path, {
        ...init,
        credentials: "omit",
        redirect: "error",
        headers: { ...(init.headers as Record<string, string> | undefined), [SECRET_HEADER]: this.secret },
      });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new CallError(0, "no_server", "the console's server does not answer", "Is `asya ui` still running?");
    }
  }

  private async read<Answer>(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await this.open(path, init);
    const body = await response.text();
    if (!response.ok) throw errorOf(response.status, valueOf(body));
    const value = body === "" ? null : valueOf(body);
    if (value === undefined) throw new CallError(response.status, "", "the gateway's answer is no JSON, or nested too deeply");
    return value as Answer;
  }

  private post<Answer>(path: string, body: unknown): Promise<Answer> {
    return this.send(path, JSON.stringify(body));
  }

  private send<Answer>(path: string, body: string): Promise<Answer> {
    const headers = { "content-type": "application/json" };
    return this.read(path, { method: "POST", headers, body });
  }

  info(): Promise<MeshInfo> {
    return this.read("/console/info");
  }

  /** Read the numbers of the mesh, or of some actors. */
  mesh(actors?: readonly string[]): Promise<MeshNumbers> {
    return this.read(withQuery("/api/v1/operations/mesh", actors === undefined ? {} : { actor: actors.join(",") }));
  }

  actor(name: string): Promise<ActorDetails> {
    return this.read(`/api/v1/operations/actors/${encodeURIComponent(name)}`);
  }

  actorLogs(name: string, query: Query): Promise<LogPage> {
    return this.read(withQuery(`/api/v1/operations/actors/${encodeURIComponent(name)}/logs`, query));
  }

  deadLetters(query: Query): Promise<LetterPage> {
    return this.read(withQuery("/api/v1/operations/dead-letters", query));
  }

  runs(query: Query): Promise<RunPage> {
    return this.read(withQuery("/api/v1/operations/runs", query));
  }

  run(id: string, query: Query): Promise<RunDetails> {
    return this.read(withQuery(`/api/v1/operations/runs/${encodeURIComponent(id)}`, query));
  }

  runLogs(id: string, query: Query): Promise<LogPage> {
    return this.read(withQuery(`/api/v1/operations/runs/${encodeURIComponent(id)}/logs`, query));
  }

  tasks(query: Query, signal?: AbortSignal): Promise<Page<TaskView>> {
    return this.read(withQuery("/api/v1/mesh", query), signal ? { signal } : {});
  }

  task(id: string): Promise<TaskView> {
    return this.read(taskPath(id));
  }

  children(id: string, query: Query): Promise<Page<TaskView>> {
    return this.read(withQuery(`${taskPath(id)}/children`, query));
  }

  taskSet(id: string): Promise<{ set: SetView | null }> {
    return this.read(`${taskPath(id)}/set`);
  }

  timeline(id: string, query: Query): Promise<Page<TimelineEntry>> {
    return this.read(withQuery(`${taskPath(id)}/timeline`, query));
  }

  failures(query: Query): Promise<Page<FailureGroup>> {
    return this.read(withQuery("/api/v1/operations/failures", query));
  }

  payloads(id: string): Promise<{ items: KeptHop[] }> {
    return this.read(`${taskPath(id)}/payloads`);
  }

  hopPayloads(id: string, hop: number): Promise<HopPayloads> {
    return this.read(`${taskPath(id)}/payloads/${hop}`);
  }

  logs(id: string, query: Query): Promise<Page<LogLine>> {
    return this.read(withQuery(`/api/v1/operations/logs/${encodeURIComponent(id)}`, query));
  }

  async cancel(id: string): Promise<void> {
    await this.read<null>(taskPath(id), { method: "DELETE" });
  }

  replay(id: string, start: { hop?: number; failed_only?: boolean; force?: boolean } = {}): Promise<Replayed> {
    return this.post(`${taskPath(id)}/replay`, start);
  }

  /** Say that a failure needs no replay, or undo that. */
  async dismiss(id: string, wish: { reason: string } | { undo: true }): Promise<void> {
    await this.post<unknown>(`${taskPath(id)}/dismiss`, wish);
  }

  /**
   * Answer a pause.
   *
   * @param input - A JSON object; as text, so that its numbers keep their digits.
   * @param since - The start of the pause that was read.
   */
  async resume(id: string, input: string, since: string): Promise<void> {
    await this.send<unknown>(`${taskPath(id)}/resume`, `{"input":${input},"since":${JSON.stringify(since)}}`);
  }

  async redrive(tasks: { id: string; actor: string }[], force = false): Promise<RedriveOutcome[]> {
    return (await this.post<{ items: RedriveOutcome[] }>("/console/redrives", { tasks, force })).items;
  }
}

/** Return the path of a task. */
export function taskPath(id: string): string {
  return `/api/v1/mesh/${encodeURIComponent(id)}`;
}
