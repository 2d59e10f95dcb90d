/** How the envelopes of a run ended. */

import type { EnvelopeLine, RunOutcomes } from "../api/types";

export type Tone = "good" | "bad" | "live" | "quiet";

const BAD = ["refused", "failed", "partly failed", "timed_out", "crashed", "charged", "result unreadable"];
const OUTCOMES = ["succeeded", "failed", "retried", "again", "canceled"] as const;

/** Return how the word of a run reads; the gateway decides the word. */
export function toneOf(state: string, isOpen: boolean): Tone {
  if (BAD.includes(state)) return "bad";
  if (state === "succeeded") return "good";
  return isOpen ? "live" : "quiet";
}

/** Return the envelopes of a run by outcome, such as `19 succeeded, 1 failed`; before any is routed, their number. */
export function outcomesText(outcomes: RunOutcomes | null | undefined, envelopes: number): string {
  if (!outcomes) return envelopes.toLocaleString("en");
  const counts = OUTCOMES.map((name) => [outcomes[name] ?? 0, name] as const);
  return counts.flatMap(([count, name]) => (count > 0 ? `${count.toLocaleString("en")} ${name}` : [])).join(", ");
}

export interface OutcomeGroup {
  outcome: string;
  members: EnvelopeLine[];
  isBad: boolean;
}

/** Return the envelopes by outcome: those that went wrong first, then the largest group first. */
export function outcomeGroups(members: readonly EnvelopeLine[]): OutcomeGroup[] {
  const byOutcome = new Map<string, EnvelopeLine[]>();
  for (const member of members) {
    const some = byOutcome.get(member.outcome);
    if (some === undefined) byOutcome.set(member.outcome, [member]);
    else some.push(member);
  }
  const groups = [...byOutcome].map(([outcome, some]) => ({
    outcome,
    members: some,
    isBad: BAD.includes(outcome) || outcome.startsWith("suspect"),
  }));
  return groups.sort(
    (one, other) => Number(other.isBad) - Number(one.isBad) || other.members.length - one.members.length,
  );
}

/**
 * Return the command that opens the Spark UI of a job run.
 *
 * @param logUri - The driver's log, whose path names the application.
 */
export function dashboardCommand(logUri: string | null, jobRunId: string, region: string): string | null {
  const application = /\/applications\/([A-Za-z0-9]+)\/jobs\//.exec(logUri ?? "")?.[1];
  if (application === undefined || !/^[A-Za-z0-9]+$/.test(jobRunId) || !/^[a-z0-9-]+$/.test(region)) return null;
  return `aws emr-serverless get-dashboard-for-job-run --region ${region} --application-id ${application} --job-run-id ${jobRunId}`;
}
