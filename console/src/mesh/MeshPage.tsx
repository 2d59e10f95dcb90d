/** The mesh: its actors and tools as a graph and as a table, with numbers that are live. */

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import type { MeshNumbers } from "../api/types";
import { useClient } from "../api/context";
import { Fold } from "../shared/Fold";
import { Refused } from "../shared/LogLines";
import { counted } from "../shared/format";
import { useIsNarrow } from "../shared/useIsNarrow";
import { usePolling } from "../shared/usePolling";
import { show } from "../shared/useView";
import { addressOf, type View } from "../view";
import { ActorTable } from "./ActorTable";
import { meshGraph } from "./graph";
import { Troubles } from "./Troubles";
import { type Trouble, troublesOf } from "./troubles";
import "../shared/tables.css";
import "./mesh.css";

const MeshDrawing = lazy(() => import("./MeshDrawing"));

export default function MeshPage({ view }: { view: Extract<View, { page: "mesh" }> }) {
  const client = useClient();
  const polling = usePolling();
  const mesh = useQuery({ queryKey: ["mesh"], queryFn: () => client.mesh(), refetchInterval: polling, retry: false });
  return (
    <>
      <h1>Mesh</h1>
      {mesh.error !== null && <Refused error={mesh.error} />}
      {mesh.data === undefined ? (
        mesh.error === null && <p role="status">Loading…</p>
      ) : (
        <Mesh mesh={mesh.data} tool={view.tool} />
      )}
    </>
  );
}

function Mesh({ mesh, tool }: { mesh: MeshNumbers; tool: string | undefined }) {
  const isNarrow = useIsNarrow();
  const [isOpen, setOpen] = useState<boolean | null>(null);
  const graph = meshGraph(mesh, tool);
  const actors = graph.nodes.flatMap(({ actor }) => actor ?? []).sort((one, other) => (one.name < other.name ? -1 : 1));
  return (
    <>
      <Attention mesh={mesh} />
      <div className="listing">
        <p className="count">{counted(actors.length, "actor")}</p>
        <ToolChoice mesh={mesh} tool={tool} />
      </div>
      <Fold title="Graph" isOpen={isOpen ?? !isNarrow} onToggle={setOpen}>
        <Suspense fallback={<p role="status">Loading…</p>}>
          <MeshDrawing graph={graph} />
        </Suspense>
      </Fold>
      <ActorTable actors={actors} />
      {actors.every((actor) => actor.per_minute === null) && (
        <p className="quiet">Rates and ages come from CloudWatch, which has no values of this mesh now.</p>
      )}
    </>
  );
}

/** The actors with troubles, each with a link to what tells more. */
function Attention({ mesh }: { mesh: MeshNumbers }) {
  const troubled = mesh.actors
    .map((actor) => ({ actor, troubles: troublesOf(actor) }))
    .filter(({ troubles }) => troubles.length > 0)
    .sort((one, other) => Number(isBad(other.troubles)) - Number(isBad(one.troubles)));
  if (troubled.length === 0) return null;
  return (
    <section className="groups" aria-labelledby="attention-title">
      <h2 id="attention-title">Needs attention</h2>
      <ul>
        {troubled.map(({ actor, troubles }) => (
          <li key={actor.name}>
            <a href={addressOf({ page: "actor", actor: actor.name, tab: actor.dead_letters > 0 ? "dead-letters" : "overview" })}>
              {actor.name}
            </a>
            : <Troubles troubles={troubles} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function isBad(troubles: readonly Trouble[]): boolean {
  return troubles.some((each) => each.isBad);
}

function ToolChoice({ mesh, tool }: { mesh: MeshNumbers; tool: string | undefined }) {
  if (mesh.tools.length === 0) return null;
  const names = mesh.tools.map(({ name }) => name);
  return (
    <label className="choice">
      Tool{" "}
      <select
        value={tool ?? ""}
        onChange={({ target }) =>
          show({ page: "mesh", ...(target.value ? { tool: target.value } : {}) }, { inPlace: true })
        }
      >
        <option value="">all</option>
        {[...new Set(tool ? [...names, tool] : names)].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
