/** The answers to a pause: what a form holds as text becomes JSON of the type of each field. */

import type { PauseField } from "../api/types";
import { type Json, parseJson, WrittenNumber } from "../shared/json";

/** The name of the only input of a pause without fields: a whole JSON object. */
export const WHOLE = "";

export type Texts = Record<string, string>;

/** A JSON object as text: a number of the reader keeps all its digits. */
export type Answers = { input: string } | { problems: Texts };

/** Return the text with which a form begins: the default of each field. */
export function firstTexts(fields: readonly PauseField[]): Texts {
  if (fields.length === 0) return { [WHOLE]: "{}" };
  return Object.fromEntries(fields.map((field) => [field.name, firstText(field)]));
}

/** A default that no option is written like is left to the mesh: 1 is the option 1.0 to it. */
function firstText(field: PauseField): string {
  if (field.default == null) return "";
  const text = textOf(field, field.default);
  const options = field.type === "array" ? undefined : field.options?.map((each) => textOf(field, each));
  return options === undefined || options.includes(text) ? text : "";
}

/** Return a value as the form holds it. */
export function textOf(field: PauseField, value: Json): string {
  return field.type === "string" && typeof value === "string" && field.options === undefined ? value : JSON.stringify(value);
}

/** Read the answers, or say for each field what is wrong. Empty answers are left out: the mesh has the defaults. */
export function readAnswers(fields: readonly PauseField[], texts: Texts): Answers {
  if (fields.length === 0) return readWhole(texts[WHOLE] ?? "");
  const input: string[] = [];
  const problems: Texts = {};
  for (const field of fields) {
    const text = texts[field.name] ?? "";
    if (text.trim() === "") {
      if (field.required !== false && field.default == null) problems[field.name] = "an answer is missing";
      continue;
    }
    try {
      input.push(`${JSON.stringify(field.name)}:${jsonOf(field, text)}`);
    } catch (error) {
      problems[field.name] = (error as Error).message;
    }
  }
  return Object.keys(problems).length > 0 ? { problems } : { input: `{${input.join(",")}}` };
}

function readWhole(text: string): Answers {
  const value = parsed(text);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof WrittenNumber);
  return isObject ? { input: text } : { problems: { [WHOLE]: "this is no JSON object" } };
}

function jsonOf(field: PauseField, text: string): string {
  if (field.type === "string" && field.options === undefined) return JSON.stringify(text);
  if (parsed(text) === undefined) throw new Error(`this is no JSON of the type ${field.type}`);
  return text;
}

function parsed(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
