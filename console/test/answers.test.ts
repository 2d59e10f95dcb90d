import { expect, test } from "vitest";
import type { PauseField } from "../src/api/types";
import { type Json, parseJson } from "../src/shared/json";
import { firstTexts, readAnswers, WHOLE } from "../src/task/answers";

const FIELDS: PauseField[] = [
  { name: "approved", type: "boolean" },
  { name: "title", type: "string", required: false, default: "Delays" },
  { name: "channel", type: "string", options: ["web", "mail"], default: "web" },
  { name: "count", type: "number", required: false },
  { name: "tags", type: "array", required: false },
];

test("a form begins with the defaults", () => {
  expect(firstTexts(FIELDS)).toEqual({ approved: "", title: "Delays", channel: '"web"', count: "", tags: "" });
});

test("answers have the types of their fields, and empty ones are left out", () => {
  const texts = { ...firstTexts(FIELDS), approved: "true", count: "12.5", tags: '["a"]', title: " " };
  expect(readAnswers(FIELDS, texts)).toEqual({
    input: '{"approved":true,"channel":"web","count":12.5,"tags":["a"]}',
  });
});

test("each wrong answer is named", () => {
  const answers = readAnswers(FIELDS, { count: "many", tags: "[" });
  expect("problems" in answers && Object.keys(answers.problems)).toEqual(["approved", "count", "tags"]);
});

test("a default that is written unlike each option is left to the mesh", () => {
  const options = parseJson("[1.0, 2.50]") as Json[];
  const texts = (text: string) => firstTexts([{ name: "rate", type: "number", options, default: parseJson(text) }]);
  expect(texts("2.50")).toEqual({ rate: "2.50" });
  expect(texts("1")).toEqual({ rate: "" });
});

test("a text stays a text, also one that looks like JSON", () => {
  expect(readAnswers([{ name: "note", type: "string" }], { note: "17" })).toEqual({ input: '{"note":"17"}' });
});

test("a pause without fields takes an object", () => {
  expect(readAnswers([], { [WHOLE]: '{"a": 1}' })).toEqual({ input: '{"a": 1}' });
  for (const text of ["", "[]", "null", "{"]) expect(readAnswers([], { [WHOLE]: text })).toHaveProperty("problems");
});
