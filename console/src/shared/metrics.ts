import { parseJson } from "./json";

/** Return whether a line holds metrics in the embedded format of CloudWatch, and no message. */
export function isMetric(line: string): boolean {
  if (!line.includes('"_aws"')) return false;
  try {
    const entry = parseJson(line);
    return typeof entry === "object" && entry !== null && "_aws" in entry && !("message" in entry);
  } catch {
    return false;
  }
}
