/** A task: what happened to it, what it says, and what can be done about it. */

import { lazy, type ReactNode, Suspense } from "react";
import { isPaused, type StartedBy as StartedByInfo, type TaskView, type TimelineEntry } from "../api/types";
import { Facts } from "../shared/Facts";
import { Copy, Problem, Status, Time } from "../shared/parts";
import { Tabs } from "../shared/Tabs";
import { StoredAt } from "../shared/StoredAt";
import { show } from "../shared/useView";
import { addressOf, type TaskTab, type View } from "../view";
import { Canceled } from "./Canceled";
import { Children } from "./Children";
import { Failure } from "./Failure";
import { Hops } from "./Hops";
import { WaitsFor } from "./MissingSlices";
import { Logs } from "./Logs";
import { Partials } from "./Partials";
import { PauseForm } from "./PauseForm";
import { RouteView } from "./RouteView";
import { Settled } from "./Settled";
import { TaskActions } from "./TaskActions";
import { TraceLinks } from "./TraceLinks";
import { Unread } from "./Unread";
import { type FollowedTask, useTask } from "./useTask";

const Payloads = lazy(() => import("./Payloads"));

const TITLES: Record<TaskTab, string> = {
  overview: "Overview",
  hops: "Hops",
  children: "Slices",
  partials: "Partials",
  payloads: "Payloads",
  logs: "Logs",
};

export default function TaskPage({ view }: { view: Extract<View, { page: "task" }> }) {
  const followed = useTask(view.id);
  const { task, error } = followed;
  return (
    <>
      <h1>
        <span className="id">
          {view.id}
          <Copy text={view.id} label="the id of the task" />
        </span>
      </h1>
      {error !== null && task === undefined && <Problem error={error} />}
      {task !== undefined && (
        <>
          <Facts facts={factsOf(task, runsOf(followed.timeline, task))} />
          <TaskActions task={task} />
          <Tabs
            label="Parts of the task"
            titles={TITLES}
            tab={view.tab}
            onOpen={(tab) => show({ page: "task", id: view.id, tab }, { inPlace: true })}
          >
            <Panel view={view} followed={{ ...followed, task }} />
          </Tabs>
        </>
      )}
    </>
  );
}

/** Return the job runs of a task, the latest first: the one at work, and those of its hops. */
function runsOf(timeline: readonly TimelineEntry[], { run }: TaskView): string[] {
  const found = [...timeline].reverse().flatMap((hop) => (hop.run === undefined ? [] : [hop.run.run_id]));
  return [...new Set([...(run === undefined ? [] : [run.run_id]), ...found])];
}

function factsOf(task: TaskView, runs: readonly string[]): [string, ReactNode][] {
  return [
    ["Status", <Status key="status" status={task.status} />],
    ["Reason", task.reason !== "Completed" && task.reason],
    ["Progress", task.status === "running" && `${task.progress_percent} %`],
    ["Waits until", task.waiting_until && <Time key="waits" at={task.waiting_until} />],
    ["Tool", task.tool],
    ["Started by", task.started_by && <StartedBy key="started" by={task.started_by} />],
    ["After", task.started_by?.after?.join(", ")],
    ["Slot", task.started_by?.slot && <Time key="slot" at={task.started_by.slot} />],
    ["Owner", task.owner],
    ["Created", <Time key="created" at={task.created_at} />],
    ["Changed", <Time key="changed" at={task.updated_at} />],
    ["Deadline", task.deadline_at && <Deadline key="deadline" at={task.deadline_at} stands={isPaused(task.status)} />],
    ["Generation", task.generation > 0 && task.generation],
    ["Slice of", task.parent_id && <TaskLink key="parent" id={task.parent_id} />],
    ["Root", task.root_id && task.root_id !== task.parent_id && <TaskLink key="root" id={task.root_id} />],
    ["Result", task.result_uri && <StoredAt key="result" uri={task.result_uri} label="the address of the result" />],
    [runs.length > 1 ? "Job runs" : "Job run", runs.length > 0 && runs.map((id) => <RunLink key={id} id={id} />)],
  ];
}

/** A deadline; that of a paused task moves on by the time of the pause. */
function Deadline({ at, stands }: { at: string; stands: boolean }) {
  return stands ? (
    <>
      stands still while the task is paused (it was <Time at={at} />)
    </>
  ) : (
    <Time at={at} />
  );
}

/** What started a task; a replay leads to the task that it replays. */
function StartedBy({ by: { kind, name } }: { by: StartedByInfo }) {
  if (kind === "replay" && name !== undefined) {
    return (
      <>
        replay of <TaskLink id={name} />
      </>
    );
  }
  return <>{[kind, name].filter(Boolean).join(" ")}</>;
}

function TaskLink({ id }: { id: string }) {
  return <a href={addressOf({ page: "task", id, tab: "overview" })}>{id}</a>;
}

function RunLink({ id }: { id: string }) {
  return (
    <>
      <a href={addressOf({ page: "run", id, tab: "envelopes" })}>{id}</a>{" "}
    </>
  );
}

interface PanelProps {
  view: Extract<View, { page: "task" }>;
  followed: FollowedTask & { task: TaskView };
}

function Panel({ view, followed: { task, timeline, partials } }: PanelProps) {
  switch (view.tab) {
    case "hops":
      return (
        <>
          <Hops task={task} timeline={timeline} />
          <TraceLinks timeline={timeline} />
        </>
      );
    case "children":
      return <Children task={task} />;
    case "partials":
      return <Partials partials={partials} />;
    case "payloads":
      return (
        <Suspense fallback={<p role="status">Loading…</p>}>
          <Payloads task={task} hop={view.hop} />
        </Suspense>
      );
    case "logs":
      return <Logs task={task} />;
    default:
      return (
        <>
          {task.pause !== undefined && isPaused(task.status) && <PauseForm task={task} pause={task.pause} />}
          <Settled task={task} />
          <Canceled task={task} />
          <Failure task={task} />
          <Unread task={task} />
          {task.status === "running" && <WaitsFor task={task} />}
          <RouteView task={task} timeline={timeline} />
          <Stages task={task} />
          <Result task={task} />
        </>
      );
  }
}

function Stages({ task: { run } }: { task: TaskView }) {
  if (run?.stages === undefined || run.stages.length === 0) return null;
  return (
    <section aria-labelledby="stages-title">
      <h2 id="stages-title">Spark stages</h2>
      <ul className="stages">
        {run.stages.map(({ stage, name, tasks = 0, done = 0 }) => (
          <li key={stage}>
            <label>
              {name || `stage ${stage}`}: {done} of {tasks} <progress value={done} max={Math.max(tasks, 1)} />
            </label>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Result({ task }: { task: TaskView }) {
  if (task.result === undefined) return null;
  return (
    <section aria-labelledby="result-title">
      <h2 id="result-title">Result</h2>
      <pre tabIndex={0}>{JSON.stringify(task.result, null, 2)}</pre>
    </section>
  );
}
