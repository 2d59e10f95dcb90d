/** The actors as a table: what the graph shows, for screen readers and small screens. */

import type { ActorNumbers } from "../api/types";
import { duration, rounded } from "../shared/format";
import { type Column, Count, Known, WideTable } from "../shared/WideTable";
import { addressOf } from "../view";

const COLUMNS: readonly Column[] = [
  { name: "Actor" },
  { name: "Kind" },
  { name: "Waiting", isNumber: true },
  { name: "At work", isNumber: true },
  { name: "Oldest", isNumber: true },
  { name: "A minute", isNumber: true },
  { name: "Failing a minute", isNumber: true },
  { name: "Dead letters", isNumber: true },
  { name: "Circuit" },
  { name: "Job runs" },
];

export function ActorTable({ actors }: { actors: readonly ActorNumbers[] }) {
  return (
    <WideTable label="Actors" columns={COLUMNS} className="actors">
      {actors.map((actor) => (
        <tr key={actor.name}>
          <th scope="row">
            <a href={addressOf({ page: "actor", actor: actor.name, tab: "overview" })}>{actor.name}</a>
          </th>
          <td>{actor.kind}</td>
          <Count value={actor.waiting} />
          <Count value={actor.in_flight} />
          <Known value={actor.oldest_seconds} text={(seconds) => duration(seconds * 1000)} />
          <Known value={actor.per_minute} text={rounded} />
          <td className={numberClass(actor.failing_per_minute ?? 0)}>
            {actor.failing_per_minute === null ? "–" : rounded(actor.failing_per_minute)}
          </td>
          <td className={numberClass(actor.dead_letters)}>
            {actor.dead_letters === 0 ? (
              0
            ) : (
              <a href={addressOf({ page: "actor", actor: actor.name, tab: "dead-letters" })}>
                {actor.dead_letters.toLocaleString("en")}
              </a>
            )}
          </td>
          <td className={actor.circuit === "open" ? "bad" : undefined}>{actor.circuit ?? "–"}</td>
          <td>
            <Runs actor={actor} />
          </td>
        </tr>
      ))}
    </WideTable>
  );
}

function numberClass(value: number): string {
  return value > 0 ? "number bad" : "number";
}

function Runs({ actor: { name, runs } }: { actor: ActorNumbers }) {
  if (runs === null) return "–";
  const parts = [
    `${runs.running} running`,
    `${runs.lingering} lingering`,
    `${runs.pending.toLocaleString("en")} pending`,
    ...(runs.is_drained ? ["stopped"] : []),
  ];
  return <a href={addressOf({ page: "runs", actor: name })}>{parts.join(", ")}</a>;
}
