/** The slices without a result: which ones a set waits for. */

import type { SetView, TaskView } from "../api/types";
import { Status, Time } from "../shared/parts";
import { addressOf } from "../view";
import { useTaskSet } from "./useTaskSet";

const LISTED = 10;

/** One sentence about the set of a running task, with a link to its slices. */
export function WaitsFor({ task }: { task: TaskView }) {
  const set = useTaskSet(task);
  if (set === null || set.missing.length === 0 || set.decision !== undefined) return null;
  const indices = set.missing.slice(0, LISTED).map((each) => each.slice_index);
  return (
    <p className="waits">
      Waits for{" "}
      <a href={addressOf({ page: "task", id: task.id, tab: "children" })}>
        {set.missing.length.toLocaleString("en")} of {set.slice_count.toLocaleString("en")} slices
      </a>
      : {indices.join(", ")}
      {set.missing.length > LISTED && ", …"}
    </p>
  );
}

/** Each slice without a result, with the state of its task. */
export function MissingSlices({ task, slices }: { task: TaskView; slices: readonly TaskView[] }) {
  const set = useTaskSet(task);
  if (set === null || set.missing.length === 0) return null;
  const known = new Map(slices.map((each) => [each.id, each]));
  return (
    <section aria-labelledby="missing-title">
      <h2 id="missing-title">
        {set.missing.length.toLocaleString("en")} of {set.slice_count.toLocaleString("en")} slices missing
      </h2>
      <p className="quiet">{endOf(set)}</p>
      <ul className="slices">
        {set.missing.map(({ slice_index: index, id, is_lost: isLost }) => {
          const slice = id === undefined ? undefined : id === task.id ? task : known.get(id);
          return (
            <li key={index} className={isLost ? "failed" : slice?.status}>
              <span>
                Slice {index}{" "}
                {isLost ? <span className="quiet">ended without a result</span> : slice && <Status status={slice.status} />}
                {!isLost && slice === undefined && <span className="quiet">has reported nothing</span>}
              </span>
              {id !== undefined && <a href={addressOf({ page: "task", id, tab: "overview" })}>{id}</a>}
              {slice?.actor !== undefined && <span className="quiet">{slice.actor}</span>}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function endOf({ decision, due_at: dueAt }: SetView) {
  if (decision !== undefined) return `The set has ended without them: ${decision}.`;
  return (
    <>
      The set waits for them until <Time at={dueAt} />.
    </>
  );
}
