import { expect, test } from "vitest";
import { partsOf } from "../src/task/shown";

const addresses = (text: string, type: "string" | "object", cut = false): string[] =>
  partsOf({ pointer: "/a", text, type, cut }).flatMap((part) => (part.isAddress ? [part.text] : []));

test.each([
  ["https://example.org/report?id=1&x=[2]#top", true],
  ["s3://bucket-1/runs/day=2026-01-01/part.parquet", true],
  ["https://bank.example@evil.example/", false],
  ["https://bаnk.example/", false],
  ["javascript:alert(1)//https://x", false],
  ["data:text/html,x", false],
  ["see https://example.org", false],
])("%s", (text, isAddress) => {
  expect(addresses(text, "string")).toEqual(isAddress ? [text] : []);
  expect(addresses(JSON.stringify({ a: text }), "object")).toEqual(isAddress ? [text] : []);
});

test("a text that was cut is no address", () => {
  expect(addresses("https://example.org/long", "string", true)).toEqual([]);
});

test("the parts are the text, digits and all", () => {
  const text = '{"total": 12345678901234567.89, "uri": "s3://bucket/a", "\\"https://x.example\\"": "https://y.example/b"}';
  const parts = partsOf({ pointer: "", text, type: "object" });
  expect(parts.map((part) => part.text).join("")).toBe(text);
  expect(parts.filter((part) => part.isAddress)).toHaveLength(2);
});
