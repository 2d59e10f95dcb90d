/**
 * JSON whose numbers keep their digits. This module alone parses JSON (test/json.test.ts).
 *
 * JavaScript has numbers of 53 bits: it makes 3544790567247868000 of 3544790567247868102, null of 1e400, and 1 of 1.0.
 */

declare global {
  interface JSON {
    /** What `stringify` writes as it is. */
    rawJSON(text: string): unknown;
    parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): unknown;
  }
}

/** A number as it is written, if JavaScript would write it with other digits. `JSON.stringify` writes it as it is. */
export class WrittenNumber {
  constructor(readonly text: string) {}

  toJSON(): unknown {
    return JSON.rawJSON(this.text);
  }

  toString(): string {
    return this.text;
  }
}

export type Json = null | boolean | number | string | WrittenNumber | Json[] | { [key: string]: Json };

/** Return whether the browser gives the text of the numbers in JSON: Chrome and Edge 114, Firefox 135, Safari 18.4. */
export function keepsDigits(): boolean {
  return typeof JSON.rawJSON === "function";
}

/**
 * Parse JSON.
 *
 * @throws SyntaxError - The text is no JSON.
 */
export function parseJson(text: string): Json {
  return JSON.parse(text, (_, value, { source }) =>
    typeof value === "number" && String(value) !== source ? new WrittenNumber(source) : value,
  ) as Json;
}

/** Return JSON with a line for each value; any other text, such as one that was cut, stays as it is. */
export function indented(text: string): string {
  try {
    return JSON.stringify(parseJson(text), null, 2);
  } catch {
    return text;
  }
}
