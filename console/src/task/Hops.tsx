/** The attempts at each hop over time: on the queue, and at work. */

import { Fragment } from "react";
import { hasEnded, type TaskView, type TimelineEntry } from "../api/types";
import { useNow } from "../shared/clock";
import { duration } from "../shared/format";
import { Time } from "../shared/parts";
import { addressOf } from "../view";
import { type Bar, type Gantt, ganttOf, percentOf, type StageBar, stageBarsOf } from "./gantt";

export function Hops({ task, timeline }: { task: TaskView; timeline: readonly TimelineEntry[] }) {
  const isOver = hasEnded(task.status);
  const now = useNow(!isOver);
  if (timeline.length === 0) return <p>No hop is reported yet.</p>;
  const gantt = ganttOf(timeline, task.created_at, now, isOver);
  return (
    <div className="wide" tabIndex={0} role="group" aria-label="Hops over time">
      <p className="quiet">
        {duration(gantt.until - gantt.from)} in all. <span className="key queued" /> on the queue{" "}
        <span className="key worked" /> at work{" "}
        {timeline.some(({ run }) => run?.stages?.length) && "(of a Spark stage: the share of its tasks that are done)"}
      </p>
      <table className="hops">
        <thead>
          <tr>
            <th scope="col">Hop</th>
            <th scope="col">Actor</th>
            <th scope="col">Received</th>
            <th scope="col">On the queue</th>
            <th scope="col">At work</th>
            <th scope="col" className="chart">
              Time
            </th>
          </tr>
        </thead>
        <tbody>
          {gantt.bars.map((bar) => (
            <Fragment key={`${bar.entry.generation}.${bar.entry.position}.${bar.entry.attempt}`}>
              <HopRow bar={bar} gantt={gantt} />
              {stageBarsOf(bar).map((stage) => (
                <StageRow key={stage.stage.stage} bar={stage} gantt={gantt} />
              ))}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function HopRow({ bar, gantt }: { bar: Bar; gantt: Gantt }) {
  const { entry } = bar;
  const hop = entry.generation > 0 ? `${entry.generation}.${entry.position}` : String(entry.position);
  return (
    <tr>
      <td>{hop}</td>
      <td>
        {entry.actor}
        {entry.attempt > 1 && <span className="quiet"> attempt {entry.attempt}</span>}
        {entry.run !== undefined && (
          <>
            {" "}
            <a href={addressOf({ page: "run", id: entry.run.run_id, tab: "envelopes" })}>job run</a>
          </>
        )}
      </td>
      <td>{entry.received_at && <Time at={entry.received_at} />}</td>
      <td>{duration(bar.from - bar.queuedFrom)}</td>
      <td>
        {duration(bar.until - bar.from)}
        {!bar.isDone && <span className="quiet"> not completed</span>}
      </td>
      <td className="chart" aria-hidden="true">
        <div className="bars">
          <span className="queued" style={place(bar.queuedFrom, bar.from, gantt)} />
          <span className={bar.isDone ? "worked" : "worked open"} style={place(bar.from, bar.until, gantt)} />
        </div>
      </td>
    </tr>
  );
}

/** A Spark stage under the hop of its job run: how far its tasks are, and since when. */
function StageRow({ bar: { stage, from, doneUntil, until }, gantt }: { bar: StageBar; gantt: Gantt }) {
  const { name, tasks = 0, done = 0, began_at: began } = stage;
  return (
    <tr className="stage">
      <td />
      <td>{name || `stage ${stage.stage}`}</td>
      <td>{began && <Time at={began} />}</td>
      <td />
      <td>
        {done.toLocaleString("en")} of {tasks.toLocaleString("en")} tasks
      </td>
      <td className="chart" aria-hidden="true">
        <div className="bars">
          <span className="queued" style={place(from, until, gantt)} />
          <span className="worked" style={place(from, doneUntil, gantt)} />
        </div>
      </td>
    </tr>
  );
}

function place(from: number, until: number, gantt: Gantt): { left: string; width: string } {
  const left = percentOf(from, gantt);
  return { left: `${left}%`, width: `max(1px, ${percentOf(until, gantt) - left}%)` };
}
