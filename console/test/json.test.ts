import { expect, test, vi } from "vitest";
import { parseAnswer, USER_KEYS } from "../src/api/answer";
import { Client } from "../src/api/client";
import { EventParser } from "../src/api/stream";
import type { PartialEvent, PauseField, TaskView } from "../src/api/types";
import { indented, parseJson } from "../src/shared/json";
import { firstTexts, readAnswers, WHOLE } from "../src/task/answers";

const SOURCES = import.meta.glob<string>("../src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });

/** Numbers of each form of JSON: signs, whole parts, fractions and exponents, each with each. */
const NUMBERS = ["", "-"].flatMap((sign) =>
  ["0", "1", "7300", "9007199254740993", "3544790567247868102", "9".repeat(400)].flatMap((whole) =>
    ["", ".0", ".10", ".89", ".1234567890123456789", `.${"0".repeat(330)}1`].flatMap((fraction) =>
      ["", "e0", "E+3", "e-7", "e400", "E-400"].map((exponent) => sign + whole + fraction + exponent),
    ),
  ),
);

/** Make a call that gets an answer; return what the page reads, and the body that it has sent. */
async function calling<Read>(answer: string, call: (client: Client) => Promise<Read>): Promise<{ read: Read; body: unknown }> {
  let body: unknown;
  const fetching = vi.spyOn(globalThis, "fetch").mockImplementation((_, init) => {
    body = init?.body;
    return Promise.resolve(new Response(answer));
  });
  try {
    return { read: await call(new Client("secret")), body };
  } finally {
    fetching.mockRestore();
  }
}

async function taskWith(answer: string): Promise<TaskView> {
  return (await calling(answer, (client) => client.task("order-1"))).read;
}

test("the numbers are many, and most of them are not what JavaScript would make of them", () => {
  expect(NUMBERS.length).toBe(432);
  expect(NUMBERS.filter((number) => JSON.stringify(Number(number)) !== number).length).toBeGreaterThan(400);
});

/** Show a number in each way of the page; the text of a task, of a partial and of a payload. */
async function shown(number: string): Promise<(string | undefined)[]> {
  const task = await taskWith(`{"id":"order-1","progress_percent":40.0,"result":{"total":${number}}}`);
  const [event] = new EventParser().push(`event: partial\ndata: {"position":1.0,"data":[${number}]}\n\n`);
  return [
    JSON.stringify(task.result),
    JSON.stringify((event?.data as PartialEvent).data),
    indented(`{"a":[${number}]}`),
    String(parseJson(number)),
  ];
}

test("any number keeps its digits wherever it is shown", async () => {
  for (const number of NUMBERS) {
    const expected = [`{"total":${number}}`, `[${number}]`, `{\n  "a": [\n    ${number}\n  ]\n}`, number];
    expect(await shown(number)).toEqual(expected);
  }
});

test("any number keeps its digits from a field to the body of the answer", async () => {
  for (const number of NUMBERS) {
    const asked = parseAnswer(`{"fields":[{"name":"total","type":"number","default":${number}}]}`);
    const { fields } = asked as { fields: PauseField[] };
    expect(firstTexts(fields)).toEqual({ total: number });
    for (const answers of [readAnswers(fields, { total: number }), readAnswers([], { [WHOLE]: `{"total":${number}}` })]) {
      const input = "input" in answers ? answers.input : "";
      const { body } = await calling("{}", (client) => client.resume("order-1", input, "now"));
      expect(body).toBe(`{"input":{"total":${number}},"since":"now"}`);
    }
  }
});

test("the numbers of the mesh are numbers", () => {
  expect(parseAnswer('{"progress_percent":40.0,"items":[{"size":1e3}],"result":{"a":1.5,"b":2}}')).toEqual({
    progress_percent: 40,
    items: [{ size: 1000 }],
    result: { a: 1.5, b: 2 },
  });
});

const DEEP = `${"[".repeat(50_000)}1.0${"]".repeat(50_000)}`;

test.each(['{"a":', "not json", "[1,]", DEEP])("the text %.20s stays as it is", (text) => {
  expect(indented(text)).toBe(text);
});

test("an answer that cannot be read is an error", async () => {
  await expect(taskWith('{"id":')).rejects.toThrow("no JSON");
});

test("a key like __proto__ is a key", () => {
  const text = '{"__proto__":1,"result":{"__proto__":1.0}}';
  expect(JSON.stringify(parseAnswer(text))).toBe(text);
});

test("one module parses JSON", () => {
  const parses = /\bJSON\s*\??\.?\s*(\[\s*["'`])?parse\b|\bparse\b.*=\s*JSON\b|\.json\s*\(/;
  const parsing = Object.keys(SOURCES).filter((path) => parses.test(SOURCES[path] ?? ""));
  expect(Object.keys(SOURCES).length).toBeGreaterThan(60);
  expect(parsing).toEqual(["../src/shared/json.ts"]);
});

test("the values of users in answers are those of the type Json", () => {
  const answers = Object.entries(SOURCES).filter(([path]) => /\/api\/(types|gateway)\.ts$/.test(path));
  const keys = answers.flatMap(([, text]) => [...text.matchAll(/^\s*(\w+)\??: .*\bJson\b/gm)].map(([, key]) => key));
  expect(new Set(keys)).toEqual(USER_KEYS);
  for (const [, text] of answers) expect(text).not.toMatch(/^\s*\w+\??: .*(?<!")\b(unknown|any)\b(?!")/m);
});
