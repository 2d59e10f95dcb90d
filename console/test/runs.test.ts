import { expect, test } from "vitest";
import type { EnvelopeLine } from "../src/api/types";
import { dashboardCommand, outcomeGroups, outcomesText, toneOf } from "../src/runs/outcomes";
import { s3Link, traceLink } from "../src/shared/address";
import { bytes, dollars, rounded } from "../src/shared/format";

function member(id: string, outcome: string): EnvelopeLine {
  const own = { generation: 0, position: 1, attempt: 1, error: "", milliseconds: 0, usage: null, dollars: null, work: null };
  return { id, outcome, ...own };
}

test.each([
  ["succeeded", false, "good"],
  ["failed", false, "bad"],
  ["partly failed", false, "bad"],
  ["refused", true, "bad"],
  ["running", true, "live"],
  ["routing", true, "live"],
  ["retried", false, "quiet"],
  // The word of EMR Serverless is no word of a run: its envelopes may have failed.
  ["SUCCESS", false, "quiet"],
] as const)("the state %s reads well, open: %s", (state, isOpen, tone) => {
  expect(toneOf(state, isOpen)).toBe(tone);
});

test.each([
  [{ failed: 1, succeeded: 19 }, 20, "19 succeeded, 1 failed"],
  [{ again: 1200, retried: 1, canceled: 2 }, 1203, "1 retried, 1,200 again, 2 canceled"],
  [null, 1203, "1,203"],
  [undefined, 20, "20"],
] as const)("the envelopes of a run are counted by outcome: %j", (outcomes, envelopes, text) => {
  expect(outcomesText(outcomes, envelopes)).toBe(text);
});

test("what went wrong is first, then the largest group", () => {
  const outcomes = ["succeeded", "runs again", "succeeded", "charged", "waits", "waits", "waits", "suspect, runs again alone"];
  const groups = outcomeGroups(outcomes.map((outcome, number) => member(String(number), outcome)));
  expect(groups.map(({ outcome, members, isBad }) => [outcome, members.length, isBad])).toEqual([
    ["charged", 1, true],
    ["suspect, runs again alone", 1, true],
    ["waits", 3, false],
    ["succeeded", 2, false],
    ["runs again", 1, false],
  ]);
});

const LOG = "s3://shop-bucket/runs/a/1/logs/applications/00app/jobs/00run/SPARK_DRIVER/stderr.gz";

test("an object in S3 has an address in the AWS console, and nothing else has", () => {
  expect(s3Link("s3://shop-bucket/a b/c?d", "eu-north-1")).toBe(
    "https://eu-north-1.console.aws.amazon.com/s3/object/shop-bucket?region=eu-north-1&prefix=a+b%2Fc%3Fd",
  );
  expect(s3Link("javascript:alert(1)", "eu-north-1")).toBeNull();
  expect(s3Link(LOG, "evil.example/")).toBeNull();
});

test("the command for the Spark UI names region, application and job run, and nothing that a shell would read", () => {
  expect(dashboardCommand(LOG, "00run", "eu-north-1")).toBe(
    "aws emr-serverless get-dashboard-for-job-run --region eu-north-1 --application-id 00app --job-run-id 00run",
  );
  expect(dashboardCommand(null, "00run", "eu-north-1")).toBeNull();
  expect(dashboardCommand(LOG, "00run; ls", "eu-north-1")).toBeNull();
});

test.each([
  [0, "$0.00"],
  [0.0509, "$0.051"],
  [0.000123456, "$0.00012"],
  [1.5, "$1.50"],
  [1234.567, "$1,234.57"],
])("%d dollars are %s", (amount, text) => {
  expect(dollars(amount)).toBe(text);
});

test.each([
  [0, "0"],
  [0.0042, "0.0042"],
  [12.345, "12.3"],
  [1240.4, "1,240"],
])("%d is rounded to %s", (value, text) => {
  expect(rounded(value)).toBe(text);
});

test.each([
  [640, "640 B"],
  [12_800, "12.5 KiB"],
  [3 * 1024 * 1024, "3 MiB"],
])("%d bytes are %s", (size, text) => {
  expect(bytes(size)).toBe(text);
});

test("a trace leads to X-Ray, and nothing else does", () => {
  expect(traceLink("5759e988bd862e3fe1be46a994272793", "eu-north-1")).toBe(
    "https://eu-north-1.console.aws.amazon.com/cloudwatch/home?region=eu-north-1#xray:traces/1-5759e988-bd862e3fe1be46a994272793",
  );
  expect(traceLink("javascript:alert(1)", "eu-north-1")).toBeNull();
  expect(traceLink("5759e988bd862e3fe1be46a994272793", "evil.example/")).toBeNull();
});
