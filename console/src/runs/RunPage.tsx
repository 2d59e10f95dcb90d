/** A job run: why it ended, who is charged, what it cost, its envelopes, stages and lines. */

import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useClient } from "../api/context";
import type { RunDetails } from "../api/types";
import { Copied, Facts } from "../shared/Facts";
import { bytes, dollars, duration, rounded } from "../shared/format";
import { LogLines, Refused } from "../shared/LogLines";
import { Copy, Problem, Time } from "../shared/parts";
import { Tabs } from "../shared/Tabs";
import { usePolling } from "../shared/usePolling";
import { show } from "../shared/useView";
import { addressOf, type View } from "../view";
import { Links } from "./Links";
import { Members } from "./Members";
import { outcomesText } from "./outcomes";
import { RunState } from "./RunState";
import { type RunSource, type RunTab, SOURCES } from "./view";
import "../shared/tables.css";
import "./runs.css";

type OneRun = Extract<View, { page: "run" }>;

const TITLES: Record<RunTab, string> = { envelopes: "Envelopes", logs: "Logs" };
const SOURCE_NAMES: Record<RunSource, string> = { driver: "the driver", executor: "the executors" };

export default function RunPage({ view }: { view: OneRun }) {
  const client = useClient();
  const polling = usePolling();
  const pages = useInfiniteQuery({
    queryKey: ["run", view.id],
    queryFn: ({ pageParam }) => client.run(view.id, { cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: (query) => {
      const read = query.state.data?.pages ?? [];
      return read[0] !== undefined && isOver(read[0]) ? false : polling(query) * Math.max(1, read.length);
    },
    retry: false,
  });
  const run = pages.data?.pages[0];
  return (
    <>
      <h1>
        <span className="id">
          {view.id}
          <Copy text={view.id} label="the id of the run" />
        </span>
      </h1>
      {pages.error !== null && (run === undefined ? <Refused error={pages.error} /> : <Problem error={pages.error} />)}
      {run === undefined && pages.error === null && <p role="status">Loading…</p>}
      {run !== undefined && (
        <>
          <Facts facts={factsOf(run)} />
          <Verdict run={run} />
          <Skew run={run} />
          <Stages run={run} />
          <Links run={run} />
          <Tabs
            label="Parts of the run"
            titles={TITLES}
            tab={view.tab}
            onOpen={(tab) => show({ page: "run", id: view.id, tab }, { inPlace: true })}
          >
            {view.tab === "envelopes" ? (
              <Members
                run={run}
                members={pages.data?.pages.flatMap(({ members }) => members) ?? []}
                more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
              />
            ) : (
              <RunLogs view={view} />
            )}
          </Tabs>
        </>
      )}
    </>
  );
}

/** A run that has ended changes no more, unless its job run is resident and goes on. */
function isOver({ mesh_state: state, emr_state: atEmr }: RunDetails): boolean {
  return state === "closed" && !(atEmr ?? "").endsWith(", resident");
}

function factsOf(run: RunDetails): [string, ReactNode][] {
  const { usage, heartbeat, work } = run;
  return [
    ["State", <RunState key="state" state={run.state} isOpen={run.mesh_state !== "closed"} />],
    ["Actor", <a key="actor" href={addressOf({ page: "actor", actor: run.actor, tab: "overview" })}>{run.actor}</a>],
    ["Size", run.size],
    ["Envelopes", outcomesText(run.outcomes, run.envelopes)],
    ["EMR state", run.emr_state],
    ["Formed", <Time key="formed" at={run.formed_at} />],
    ["Running since", run.running_at !== "" && <Time key="running" at={run.running_at} />],
    ["Starts of the driver", run.attempts.length > 0 && run.attempts.length],
    ["vCPU-hours", usage && rounded(usage.vcpu_hours)],
    ["GB-hours of memory", usage && rounded(usage.memory_gb_hours)],
    ["GB-hours of storage", usage && usage.storage_gb_hours > 0 && rounded(usage.storage_gb_hours)],
    ["Cost", run.dollars !== null && dollars(run.dollars)],
    ["Shuffle", work && `${bytes(work.shuffle_read ?? 0)} read, ${bytes(work.shuffle_written ?? 0)} written`],
    ["Spilled", work && (work.spilled_memory ?? 0) > 0 && `${bytes(work.spilled_memory ?? 0)}, ${bytes(work.spilled_disk ?? 0)} on disk`],
    ["Last heartbeat", heartbeat && <Time key="beat" at={heartbeat.at} />],
    ["Executors", heartbeat?.executors],
    ["Job run", run.job_run_id && <Copied key="job" text={run.job_run_id} label="the id of the job run" />],
  ];
}

/** Why the run ended as it did, and who is charged with it. */
function Verdict({ run: { verdict, details, problem, usage, prices } }: { run: RunDetails }) {
  return (
    <>
      {(verdict !== "" || details !== "") && (
        <section className="groups" aria-labelledby="verdict-title">
          <h2 id="verdict-title">Why it ended, and who is charged</h2>
          {verdict !== "" && <p className="lines">{verdict}</p>}
          {details !== "" && <pre tabIndex={0}>{details}</pre>}
        </section>
      )}
      {problem !== "" && <p className="problem">{problem}</p>}
      {usage !== null && (
        <p className="quiet">
          {prices}. The hours are those {usage.billed ? "billed" : "used"}.
        </p>
      )}
    </>
  );
}

/** The stage of the run whose longest task took ten times the median. */
function Skew({ run: { work } }: { run: RunDetails }) {
  const skew = work?.skew;
  if (!skew) return null;
  const { stage, name, tasks = 0, median_ms: median = 0, longest_ms: longest = 0 } = skew;
  return (
    <p className="problem">
      Skew in {name || `stage ${stage}`}: the longest of {tasks} tasks took {duration(longest)}, the median {duration(median)}.
    </p>
  );
}

function Stages({ run: { heartbeat } }: { run: RunDetails }) {
  if (heartbeat === null || heartbeat.stages.length === 0) return null;
  return (
    <section aria-labelledby="stages-title">
      <h2 id="stages-title">Spark stages</h2>
      <ul className="stages">
        {heartbeat.stages.map(({ stage, name, tasks = 0, done = 0, rows_read: read = 0, rows_written: written = 0, progress_at: since }) => (
          <li key={stage}>
            <label>
              {name || `stage ${stage}`}: {done} of {tasks} <progress value={done} max={Math.max(tasks, 1)} />
            </label>{" "}
            <Idle since={since} at={heartbeat.at} />
            <span className="quiet">
              {read > 0 && `${read.toLocaleString("en")} rows read`} {written > 0 && `${written.toLocaleString("en")} rows written`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const IDLE_MILLISECONDS = 60_000;

/** For how long no task of a stage has ended, as the last heartbeat says. */
function Idle({ since, at }: { since: string | undefined; at: string }) {
  const idle = since === undefined ? 0 : Date.parse(at) - Date.parse(since);
  return idle >= IDLE_MILLISECONDS && <span className="bad">no task has ended for {duration(idle)} </span>;
}

function RunLogs({ view: { id, source } }: { view: OneRun }) {
  const client = useClient();
  return (
    <>
      <label className="choice">
        Lines of{" "}
        <select
          value={source ?? ""}
          onChange={({ target }) => {
            const chosen = SOURCES.find((each) => each === target.value);
            show({ page: "run", id, tab: "logs", ...(chosen ? { source: chosen } : {}) }, { inPlace: true });
          }}
        >
          <option value="">driver and executors</option>
          {SOURCES.map((each) => (
            <option key={each} value={each}>
              {SOURCE_NAMES[each]}
            </option>
          ))}
        </select>
      </label>
      <LogLines
        subject={["run", id, source]}
        read={(query) => client.runLogs(id, { ...query, source })}
        nothing="There is no line. EMR Serverless uploads logs every few minutes and at the end of a job run."
      />
    </>
  );
}
