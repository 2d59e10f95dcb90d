/** Acts on many tasks. One that cannot be changed does not stop the others. */

import { CallError, type Client } from "../api/client";
import { hasEnded, isOpenFailure, isPaused, type TaskView } from "../api/types";

export const ACTIONS = ["cancel", "replay", "redrive", "dismiss"] as const;
export type Action = (typeof ACTIONS)[number];

export interface Outcome {
  id: string;
  /** What was done, such as the id of the new task; empty if nothing was. */
  done: string;
  /** Why the task was not changed; empty after a success. */
  problem: string;
}

export interface Progress {
  done: number;
  total: number;
}

const AT_ONCE = 4;
/** The reasons of origins whose sets have failed. */
export const FAILED_SETS: ReadonlySet<string> = new Set(["SliceFailed", "FanInTimeout"]);
const REDRIVES_AT_ONCE = 100;

/** The reason of a task whose message has become a dead letter. */
export const DEAD_LETTER = "DeliveryExhausted";

/**
 * Return whether an action can apply to a task: open failures run again or are dismissed, their dead letters are sent again, tasks at
 * work are canceled.
 */
export function applies(action: Action, task: TaskView): boolean {
  if (action === "cancel") return !hasEnded(task.status);
  return isOpenFailure(task) && (action !== "redrive" || task.reason === DEAD_LETTER);
}

/** Return why a failed task cannot be redriven; nothing if it can, or if it has not failed. */
export function whyNoRedrive(task: TaskView): string {
  if (task.status !== "failed" || applies("redrive", task)) return "";
  if (!isOpenFailure(task)) return "The failure is settled.";
  return `No message of this task is a dead letter: it ended as ${task.reason ?? "failed"}. Replay runs it again.`;
}

/** Return whether a task waits for an answer, and not for a time alone. */
export function asksSomething(task: TaskView): boolean {
  return isPaused(task.status) && task.pause !== undefined && task.pause.until === undefined;
}

/** Return the actors at which tasks wait. */
export function placesOf(tasks: readonly TaskView[]): string[] {
  return [...new Set(tasks.map((task) => task.actor ?? "?"))].sort();
}

/** Give one answer to paused tasks, oldest first: each to the pause that was read, so that no later question gets it. */
export function answerAll(
  client: Pick<Client, "resume">,
  tasks: readonly TaskView[],
  input: string,
  tell: (progress: Progress) => void,
): Promise<Outcome[]> {
  const answer = async (task: TaskView): Promise<string> => {
    await client.resume(task.id, input, task.pause?.since ?? "");
    return "resumed";
  };
  return forEach([...tasks].reverse(), AT_ONCE, answer, tell);
}

/**
 * Act on tasks, oldest first, and tell the progress.
 *
 * @param reason Why failures are dismissed.
 */
export async function actOnAll(
  client: Pick<Client, "cancel" | "replay" | "redrive" | "dismiss" | "task">,
  action: Action,
  tasks: readonly TaskView[],
  tell: (progress: Progress) => void,
  reason = "",
): Promise<Outcome[]> {
  const oldestFirst = [...tasks].reverse();
  if (action === "redrive") return redriveAll(client, oldestFirst, tell);
  const acts = { cancel: cancelOne(client), replay: replayOne(client), dismiss: dismissOne(client, reason) };
  const act = acts[action];
  // Replays take turns: two slices of one set must not repeat it twice.
  return forEach(oldestFirst, action === "replay" ? 1 : AT_ONCE, act, tell);
}

async function forEach(
  tasks: readonly TaskView[],
  atOnce: number,
  act: (task: TaskView) => Promise<string>,
  tell: (progress: Progress) => void,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const waiting = [...tasks];
  const work = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) {
      outcomes.push(await outcomeOf(task, act));
      tell({ done: outcomes.length, total: tasks.length });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return outcomes;
}

async function outcomeOf(task: TaskView, act: (task: TaskView) => Promise<string>): Promise<Outcome> {
  try {
    return { id: task.id, done: await act(task), problem: "" };
  } catch (error) {
    return { id: task.id, done: "", problem: problemOf(error) };
  }
}

/** Return the sentence of an error. */
export function problemOf(error: unknown): string {
  if (error instanceof CallError) return [error.message, error.advice].filter(Boolean).join(" ");
  return error instanceof Error ? error.message : String(error);
}

function cancelOne(client: Pick<Client, "cancel">): (task: TaskView) => Promise<string> {
  return async (task) => {
    await client.cancel(task.id);
    return "canceled";
  };
}

function dismissOne(client: Pick<Client, "dismiss">, reason: string): (task: TaskView) => Promise<string> {
  return async (task) => {
    await client.dismiss(task.id, { reason });
    return "dismissed";
  };
}

/** Replay failed tasks as `asya replay --failed` does: a failed slice runs again with its set, once. */
function replayOne(client: Pick<Client, "replay" | "task">): (task: TaskView) => Promise<string> {
  const replayed = new Map<string, string>();
  const start = async (id: string, wish: { failed_only?: boolean }): Promise<string> => {
    const { id: started } = await client.replay(id, wish);
    replayed.set(id, started);
    return started;
  };
  return async (task) => {
    if (!FAILED_SETS.has(task.reason ?? "")) {
      try {
        return replayed.get(task.id) ?? (await start(task.id, {}));
      } catch (error) {
        // Somebody else has replayed it meanwhile.
        if (error instanceof CallError && error.code === "replayed") return "replayed before";
        if (!isSlice(error) || task.parent_id === undefined) throw error;
      }
    }
    let origin = FAILED_SETS.has(task.reason ?? "") ? task.id : task.parent_id;
    while (origin !== undefined) {
      const known = replayed.get(origin);
      if (known !== undefined) return known;
      try {
        return await start(origin, { failed_only: true });
      } catch (error) {
        // A set within a set is repeated by the outer one.
        const parent = isSlice(error) ? (await client.task(origin)).parent_id : undefined;
        if (parent === undefined) throw error;
        origin = parent;
      }
    }
    return "";
  };
}

function isSlice(error: unknown): boolean {
  return error instanceof CallError && error.code === "slice";
}

async function redriveAll(
  client: Pick<Client, "redrive">,
  tasks: readonly TaskView[],
  tell: (progress: Progress) => void,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let start = 0; start < tasks.length; start += REDRIVES_AT_ONCE) {
    const some = tasks.slice(start, start + REDRIVES_AT_ONCE);
    try {
      const answers = await client.redrive(some.map(({ id, actor }) => ({ id, actor: actor ?? "" })));
      outcomes.push(...answers.map(({ id, problem = "" }) => ({ id, done: problem ? "" : "sent again", problem })));
    } catch (error) {
      outcomes.push(...some.map(({ id }) => ({ id, done: "", problem: problemOf(error) })));
    }
    tell({ done: outcomes.length, total: tasks.length });
  }
  return outcomes;
}
