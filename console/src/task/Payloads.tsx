/** The kept payloads before and after a hop, and what the hop has changed. */

import { useQuery } from "@tanstack/react-query";
import { diffLines } from "diff";
import { CallError } from "../api/client";
import { useClient } from "../api/context";
import type { KeptHop, PayloadText, TaskView } from "../api/types";
import { indented } from "../shared/json";
import { Copy, Problem } from "../shared/parts";
import { show } from "../shared/useView";

const DIFF_MILLISECONDS = 500;

export default function Payloads({ task, hop }: { task: TaskView; hop: number | undefined }) {
  const client = useClient();
  const kept = useQuery({
    queryKey: ["payloads", task.id, task.updated_at],
    queryFn: () => client.payloads(task.id),
    retry: false,
  });
  if (kept.error !== null) return isMissing(kept.error) ? <NoPayloads /> : <Problem error={kept.error} />;
  if (kept.data === undefined) return <p role="status">Loading…</p>;
  const hops = kept.data.items;
  const chosen = hops.find((each) => each.hop === hop) ?? hops.at(-1);
  if (chosen === undefined) return <NoPayloads />;
  return (
    <>
      <label className="choice">
        Hop{" "}
        <select
          value={chosen.hop}
          onChange={(event) =>
            show({ page: "task", id: task.id, tab: "payloads", hop: Number(event.target.value) }, { inPlace: true })
          }
        >
          {hops.map((each) => (
            <option key={each.hop} value={each.hop}>
              {each.hop}: {each.actor}
            </option>
          ))}
        </select>
      </label>
      <Hop task={task} hop={chosen} />
    </>
  );
}

function isMissing(error: unknown): boolean {
  return error instanceof CallError && error.status === 404;
}

function NoPayloads() {
  return (
    <p>
      No payload is kept. An actor with <code>keep_input: true</code> keeps what it receives.
    </p>
  );
}

function Hop({ task, hop }: { task: TaskView; hop: KeptHop }) {
  const client = useClient();
  const payloads = useQuery({
    queryKey: ["payloads", task.id, task.updated_at, hop.hop],
    queryFn: () => client.hopPayloads(task.id, hop.hop),
  });
  if (payloads.error !== null) return <Problem error={payloads.error} />;
  if (payloads.data === undefined) return <p role="status">Loading…</p>;
  const { before, after } = payloads.data;
  return (
    <div className="payloads">
      <Payload title="Before" payload={before} />
      <Payload title="After" payload={after} />
      {before?.text !== undefined && after?.text !== undefined && (
        <Difference before={indented(before.text)} after={indented(after.text)} />
      )}
    </div>
  );
}

function Payload({ title, payload }: { title: string; payload: PayloadText | null | undefined }) {
  return (
    <section>
      <h2>{title}</h2>
      {payload == null ? (
        <p className="quiet">not kept</p>
      ) : (
        <>
          <p className="quiet">
            {payload.size.toLocaleString("en")} bytes{payload.truncated && ", cut"}
            <Copy text={payload.uri} label="the address of the object" />
          </p>
          {payload.problem && <p className="problem">{payload.problem}</p>}
          {payload.text !== undefined && <pre tabIndex={0}>{indented(payload.text)}</pre>}
        </>
      )}
    </section>
  );
}

function Difference({ before, after }: { before: string; after: string }) {
  const changes = diffLines(`${before}\n`, `${after}\n`, { timeout: DIFF_MILLISECONDS });
  return (
    <section className="difference">
      <h2>Difference</h2>
      {changes === undefined ? (
        <p className="quiet">The payloads differ too much for a comparison.</p>
      ) : changes.every((each) => !each.added && !each.removed) ? (
        <p className="quiet">The hop has changed nothing.</p>
      ) : (
        <pre tabIndex={0}>
          {changes.map((each, index) => {
            const sign = each.added ? "+ " : each.removed ? "- " : "  ";
            const text = each.value.replace(/\n$/, "").replace(/^/gm, sign);
            const line = `${text}\n`;
            if (each.added) return <ins key={index}>{line}</ins>;
            return each.removed ? <del key={index}>{line}</del> : <span key={index}>{line}</span>;
          })}
        </pre>
      )}
    </section>
  );
}
