/** The actors as a table: what the graph shows, for screen readers and small screens. */

import type { ActorNumbers } from "../api/operations";
import { duration, rounded } from "../shared/format";
import { addressOf } from "../view";

export function ActorTable({ actors }: { actors: readonly ActorNumbers[] }) {
  return (
    <div className="wide" tabIndex={0} role="region" aria-label="Actors">
      <table className="actors">
        <thead>
          <tr>
            <th scope="col">Actor</th>
            <th scope="col">Kind</th>
            <th scope="col" className="number">Waiting</th>
            <th scope="col" className="number">At work</th>
            <th scope="col" className="number">Oldest</th>
            <th scope="col" className="number">A minute</th>
            <th scope="col" className="number">Failing a minute</th>
            <th scope="col" className="number">Dead letters</th>
            <th scope="col">Circuit</th>
            <th scope="col">Job runs</th>
          </tr>
        </thead>
        <tbody>
          {actors.map((actor) => (
            <tr key={actor.name}>
              <th scope="row">
                <a href={addressOf({ page: "actor", actor: actor.name, tab: "overview" })}>{actor.name}</a>
              </th>
              <td>{actor.kind}</td>
              <Count value={actor.waiting} />
              <Count value={actor.in_flight} />
              <td className="number">{actor.oldest_seconds === null ? "–" : duration(actor.oldest_seconds * 1000)}</td>
              <td className="number">{actor.per_minute === null ? "–" : rounded(actor.per_minute)}</td>
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
        </tbody>
      </table>
    </div>
  );
}

function Count({ value }: { value: number }) {
  return <td className="number">{value.toLocaleString("en")}</td>;
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
