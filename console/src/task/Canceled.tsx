import type { TaskView } from "../api/types";
import { Copied } from "../shared/Facts";
import { Time } from "../shared/parts";
import { addressOf } from "../view";

/** Who canceled a task, when, and what starts it again. */
export function Canceled({ task: { canceled } }: { task: TaskView }) {
  if (canceled === undefined) return null;
  const { by, root, at } = canceled;
  return (
    <p className="waits">
      Canceled{" "}
      {by !== undefined ? (
        <>
          by <Copied text={by} label="the principal" />
        </>
      ) : (
        root !== undefined && (
          <>
            with its root <a href={addressOf({ page: "task", id: root, tab: "overview" })}>{root}</a>
          </>
        )
      )}{" "}
      at <Time at={at} />. <em>Replay…</em>{root === undefined ? " starts it again" : " of the root starts it again"} as a new task,
      from a hop whose input is kept.
    </p>
  );
}
