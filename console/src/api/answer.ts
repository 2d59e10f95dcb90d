/** Reads the JSON of the gateway: the numbers of the mesh as numbers, and the values of users with all their digits. */

import { type Json, parseJson, WrittenNumber } from "../shared/json";

/** The keys of answers and events whose values are of users: those of the type `Json` (test/json.test.ts). */
export const USER_KEYS: ReadonlySet<string> = new Set(["data", "default", "options", "result", "statement"]);

/**
 * Parse the text of an answer or an event.
 *
 * @throws SyntaxError - The text is no JSON.
 */
export function parseAnswer(text: string): unknown {
  return withNumbers(parseJson(text));
}

function withNumbers(value: Json): unknown {
  if (value instanceof WrittenNumber) return Number(value.text);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([key, each]) => [key, USER_KEYS.has(key) ? each : withNumbers(each)]));
}
