/** The job runs of heavy actors: what waits for one, what runs, and what ran. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useClient } from "../api/context";
import type { MeshNumbers, RunLine } from "../api/types";
import { dollars, rounded } from "../shared/format";
import { Refused } from "../shared/LogLines";
import { Copy, Problem, Time } from "../shared/parts";
import { usePolling } from "../shared/usePolling";
import { show } from "../shared/useView";
import { type Column, Known, WideTable } from "../shared/WideTable";
import { addressOf, type View } from "../view";
import { outcomesText } from "./outcomes";
import { RunState } from "./RunState";
import "../shared/tables.css";
import "./runs.css";

const PAGE_SIZE = "50";

const COLUMNS: readonly Column[] = [
  { name: "Run" },
  { name: "State" },
  { name: "Actor" },
  { name: "Envelopes" },
  { name: "Formed" },
  { name: "vCPU-hours", isNumber: true },
  { name: "Dollars", isNumber: true },
];

export default function RunsPage({ view: { actor } }: { view: Extract<View, { page: "runs" }> }) {
  const client = useClient();
  const polling = usePolling();
  const mesh = useQuery({ queryKey: ["mesh"], queryFn: () => client.mesh(), refetchInterval: polling, retry: false });
  const runs = useInfiniteQuery({
    queryKey: ["runs", actor],
    queryFn: ({ pageParam }) => client.runs({ actor, limit: PAGE_SIZE, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: (query) => polling(query) * (query.state.data?.pages.length ?? 1),
    retry: false,
  });
  const lines = runs.data === undefined ? [] : uniqueRuns(runs.data.pages.flatMap(({ items }) => items));
  return (
    <>
      <h1>Runs</h1>
      <div className="listing">
        <ActorChoice mesh={mesh.data} actor={actor} />
      </div>
      {mesh.data !== undefined && <Waiting mesh={mesh.data} actor={actor} />}
      {runs.error !== null && runs.data === undefined && <Refused error={runs.error} />}
      {runs.error !== null && runs.data !== undefined && <Problem error={runs.error} />}
      {runs.data === undefined && runs.error === null && <p role="status">Loading…</p>}
      {runs.data !== undefined && lines.length === 0 && <p>No job run is known. The records of old runs expire.</p>}
      {lines.length > 0 && <RunTable lines={lines} />}
      {runs.hasNextPage && (
        <button type="button" disabled={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
          Older runs
        </button>
      )}
      {lines.length > 0 && <p className="quiet">{runs.data?.pages[0]?.prices}</p>}
    </>
  );
}

/** A run that ends between two pages may be on both. */
function uniqueRuns(lines: readonly RunLine[]): RunLine[] {
  const byId = new Map<string, RunLine>();
  for (const line of lines) if (!byId.has(line.run_id)) byId.set(line.run_id, line);
  return [...byId.values()];
}

function ActorChoice({ mesh, actor }: { mesh: MeshNumbers | undefined; actor: string | undefined }) {
  const heavy = (mesh?.actors ?? []).flatMap(({ name, runs }) => (runs === null ? [] : name));
  return (
    <label className="choice">
      Actor{" "}
      <select
        value={actor ?? ""}
        onChange={({ target }) =>
          show({ page: "runs", ...(target.value ? { actor: target.value } : {}) }, { inPlace: true })
        }
      >
        <option value="">all</option>
        {[...new Set(actor ? [...heavy, actor] : heavy)].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

/** The envelopes that wait for a run, and the runs that are open, by actor. */
function Waiting({ mesh, actor }: { mesh: MeshNumbers; actor: string | undefined }) {
  const heavy = mesh.actors.filter(({ name, runs }) => runs !== null && (actor === undefined || name === actor));
  if (heavy.length === 0) return null;
  return (
    <section className="groups" aria-labelledby="now-title">
      <h2 id="now-title">Now</h2>
      <ul>
        {heavy.map(({ name, runs }) => (
          <li key={name}>
            <a href={addressOf({ page: "actor", actor: name, tab: "overview" })}>{name}</a>: {runs?.pending.toLocaleString("en")}{" "}
            waiting for a run, {runs?.running} running, {runs?.lingering} lingering
            {runs?.is_drained && <strong>, new runs are stopped</strong>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function RunTable({ lines }: { lines: readonly RunLine[] }) {
  return (
    <WideTable label="Job runs, open ones first" columns={COLUMNS} className="runs">
      {lines.map((line) => (
        <tr key={line.run_id}>
          <th scope="row">
            <span className="id">
              <a href={addressOf({ page: "run", id: line.run_id, tab: "envelopes" })}>{line.run_id}</a>
              <Copy text={line.run_id} label={`the id ${line.run_id}`} />
            </span>
          </th>
          <td>
            <RunState state={line.state} isOpen={line.is_open} />
          </td>
          <td>{line.actor}</td>
          <td>{outcomesText(line.outcomes, line.envelopes)}</td>
          <td>
            <Time at={line.formed_at} />
          </td>
          <Known value={line.usage} text={(usage) => rounded(usage.vcpu_hours)} />
          <Known value={line.dollars} text={dollars} />
        </tr>
      ))}
    </WideTable>
  );
}
