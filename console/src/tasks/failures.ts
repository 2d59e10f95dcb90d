/** The text of a failure, and tasks that failed for the same reason; as `asya failures` groups them. */

import type { FailureGroup, TaskView } from "../api/types";

const UUID = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi;
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?/g;
/** The scheme of an address in S3, and each word with a digit. */
const WORD = /s3(?=:\/\/)|[0-9A-Za-z]*\d[0-9A-Za-z]*/g;
/** A word in which letters and digits alternate, such as `00bss0ojnopziwff`, and not `utf8` or `250ms`. */
const ID = /^(?=.{6})(?:[A-Za-z]*\d+[A-Za-z]+\d[0-9A-Za-z]*|\d+[A-Za-z]{4,}|[A-Za-z]+\d+[A-Za-z]{4,})$/;
const DIGEST = /^[0-9a-f]{7,}$/i;
/** What nobody could type as a filter: control characters, and white space other than the blank. */
const UNPRINTABLE = /\p{C}|(?! )\p{Z}/gu;
const KIND_LIMIT = 300;

/** Return the error of a task, such as `KeyError: 'price'`; else its reason, or nothing. */
export function failureText(task: TaskView): string {
  if (task.error !== undefined) return `${task.error.type}: ${task.error.message}`;
  return task.status === "failed" || task.status === "canceled" ? (task.reason ?? "") : "";
}

/**
 * Return the first line of an error without what differs between tasks of one cause: numbers, times and ids are `#`, as are
 * characters that cannot be printed. It has 300 characters at most.
 */
export function kindOf(text: string): string {
  const line = (text.split("\n", 1)[0] ?? "").replace(UUID, "#").replace(TIME, "#");
  const kind = line.replace(WORD, withoutNumber).replace(/#(?:\.#)+/g, "#");
  return [...kind].slice(0, KIND_LIMIT).join("").replace(UNPRINTABLE, "#");
}

/** Return a word with `#` for its number; an id is `#` as a whole, because parts of it would tell ids apart. */
function withoutNumber(word: string): string {
  if (word === "s3") return word;
  return ID.test(word) || DIGEST.test(word) ? "#" : word.replace(/\d+/g, "#");
}

/** Group failed tasks, newest first, by actor and error; most tasks first. */
export function groupFailures(tasks: readonly TaskView[]): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const task of tasks) {
    if (task.status !== "failed") continue;
    const actor = task.actor ?? "";
    const error = kindOf(failureText(task));
    const key = JSON.stringify([actor, error]);
    const group = groups.get(key);
    if (group === undefined) {
      const { created_at: at } = task;
      groups.set(key, { actor, error, count: 1, first: at, last: at, example: task.id });
    } else {
      group.count += 1;
      group.first = task.created_at;
    }
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}

/** Add up the groups of several pages: the older page is the second one. */
export function addGroups(newer: readonly FailureGroup[], older: readonly FailureGroup[]): FailureGroup[] {
  const sums = new Map<string, FailureGroup>();
  for (const group of [...newer, ...older]) {
    const key = JSON.stringify([group.actor, group.error]);
    const sum = sums.get(key);
    sums.set(key, sum === undefined ? group : { ...sum, count: sum.count + group.count, first: group.first });
  }
  return [...sums.values()].sort((one, other) => other.count - one.count);
}
