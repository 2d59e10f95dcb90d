/** The numbers and the settings of an actor, and the tasks that failed there last. */

import type { Access, ActorDetails, Policy } from "../api/types";
import { Facts } from "../shared/Facts";
import { duration, rounded } from "../shared/format";
import { Copy, Time } from "../shared/parts";
import { addressOf } from "../view";
import { Troubles } from "./Troubles";
import { runsOf, troublesOf } from "./troubles";

export function ActorOverview({ details }: { details: ActorDetails }) {
  const { numbers, durations } = details;
  const { oldest_seconds: oldest, per_minute: rate, failing_per_minute: failing } = numbers;
  const { open_circuit: circuit } = numbers;
  const troubles = troublesOf(numbers);
  return (
    <>
      {troubles.length > 0 && (
        <p className="problem">
          <Troubles troubles={troubles} />
        </p>
      )}
      <section aria-labelledby="numbers-title">
        <h2 id="numbers-title">Now</h2>
        <Facts
          facts={[
            ["Waiting", numbers.waiting.toLocaleString("en")],
            ["At work", numbers.in_flight.toLocaleString("en")],
            ["Oldest message", oldest !== null && duration(oldest * 1000)],
            ["Hops a minute", rate !== null && rounded(rate)],
            ["Failing a minute", failing !== null && rounded(failing)],
            ["Dead letters", numbers.dead_letters.toLocaleString("en")],
            ["Circuit", numbers.circuit],
            ["Circuit not closed since", circuit?.since && <Time at={circuit.since} />],
            ["Last failure", circuit?.error],
            ["Next call allowed", circuit && <Time at={circuit.next_call_at} />],
            ["Job runs", numbers.runs && <a href={addressOf({ page: "runs", actor: numbers.name })}>{runsOf(numbers).join(", ")}</a>],
            ["Half of the calls of the last hour within", durations.median !== null && duration(durations.median)],
            ["95 % of them within", durations.p95 !== null && duration(durations.p95)],
          ]}
        />
      </section>
      <RecentErrors details={details} />
      <Policies details={details} />
      <section aria-labelledby="queue-title">
        <h2 id="queue-title">Queue and calls</h2>
        <Facts facts={settingsOf(details)} />
      </section>
      <section aria-labelledby="access-title">
        <h2 id="access-title">Access</h2>
        <Facts
          facts={[
            ["May send to", details.can_send_to === null ? "every actor" : details.can_send_to.join(", ") || "no actor"],
            ["Secrets", details.secrets.join(", ") || "none"],
          ]}
        />
        {details.access !== undefined && <Grants access={details.access} />}
      </section>
    </>
  );
}

function Grants({ access }: { access: readonly Access[] }) {
  if (access.length === 0) return <p>The mesh file grants it nothing beyond the mesh.</p>;
  return (
    <ul className="settings" aria-label="What the mesh file grants">
      {access.map((each, index) => (
        <li key={index}>
          {each.statement != null ? (
            <>
              <strong>statement</strong>: <code>{JSON.stringify(each.statement)}</code>
            </>
          ) : (
            <>
              <strong>{each.kind}</strong> <code>{each.name}</code>
              {each.location != null && (
                <>
                  {" "}
                  at <code>{each.location}</code>
                </>
              )}
              {patternsOf("reads", each.read)}
              {patternsOf("writes", each.write)}
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

function patternsOf(verb: string, patterns: readonly string[]) {
  if (patterns.length === 0) return null;
  return (
    <>
      , {verb} <code>{patterns.join(", ")}</code>
    </>
  );
}

function settingsOf({ numbers, queue, ...details }: ActorDetails): [string, string | null][] {
  return [
    ["Kind", numbers.kind],
    ["Time limit of a call", seconds(details.timeout)],
    ["Hidden while at work", seconds(queue.visibility_timeout)],
    ["Kept", seconds(queue.retention)],
    ["Receives before a dead letter", queue.max_receives === null ? "no dead letters" : String(queue.max_receives)],
    ["Messages of a batch", String(details.batch_size)],
    ["Frames", details.frames],
    ["Keeps its input", details.keep_input ? "yes" : "no"],
    ["Leaves out duplicates", details.deduplicate ? "yes" : "no"],
  ];
}

/** Return the time of a setting, such as `30 s`, `2 min` or `4 days`. */
function seconds(value: number): string {
  const days = value / 86_400;
  return days >= 2 && Number.isInteger(days) ? `${days} days` : duration(value * 1000).replace(/(?<=[a-z]) 0 (s|min)$|\.0(?= s$)/, "");
}

function Policies({ details: { policies, rules, circuit_breaker: breaker } }: { details: ActorDetails }) {
  const named = Object.entries(policies);
  return (
    <section aria-labelledby="policies-title">
      <h2 id="policies-title">Policies</h2>
      {named.length === 0 && <p>A call that fails is not tried again.</p>}
      <ul className="settings">
        {named.map(([name, policy]) => (
          <li key={name}>
            <strong>{name}</strong>: {policyText(policy)}
          </li>
        ))}
        {rules.map((rule) => (
          <li key={`${rule.policy} ${rule.errors.join()}`}>
            <code>{rule.errors.join(", ")}</code>: policy {rule.policy}
          </li>
        ))}
      </ul>
      {breaker !== null && (
        <p>
          The circuit opens for {seconds(breaker.open_for)} after {breaker.failures} failures within {seconds(breaker.window)}.
        </p>
      )}
    </section>
  );
}

function policyText(policy: Policy): string {
  const { max_attempts: attempts, max_interval: longest, max_duration: within, then_route: then } = policy;
  const parts = [`${attempts} ${attempts === 1 ? "attempt" : "attempts"}`];
  if (attempts > 1) parts.push(`${policy.backoff} delays from ${seconds(policy.initial_delay)}`);
  if (attempts > 1 && longest !== null) parts.push(`${seconds(longest)} at most`);
  if (policy.jitter) parts.push("with jitter");
  if (within !== null) parts.push(`within ${seconds(within)}`);
  if (then !== null) parts.push(`then to ${then.join(" → ")}`);
  return parts.join(", ");
}

function RecentErrors({ details: { numbers, recent_errors: errors } }: { details: ActorDetails }) {
  return (
    <section aria-labelledby="errors-title">
      <h2 id="errors-title">Recent errors</h2>
      {errors.length === 0 ? (
        <p>No task of the newest failed ones has failed here.</p>
      ) : (
        <ul className="letters">
          {errors.map((error) => (
            <li key={error.id}>
              <Time at={error.at} /> <a href={addressOf({ page: "task", id: error.id, tab: "overview" })}>{error.id}</a>
              <Copy text={error.id} label={`the id ${error.id}`} />{" "}
              <code>{[error.type, error.message].filter(Boolean).join(": ") || error.reason}</code>
            </li>
          ))}
        </ul>
      )}
      <p>
        <a href={addressOf({ page: "tasks", filter: { status: "failed", actor: numbers.name } })}>All tasks that failed here</a>
      </p>
    </section>
  );
}
