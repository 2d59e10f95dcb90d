/** What became of a failure: its replay, who dismissed it, or the task that overtook it. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { problemOf } from "../actions/bulk";
import { useClient } from "../api/context";
import type { Resolution, TaskView } from "../api/types";
import { Copied } from "../shared/Facts";
import { Time } from "../shared/parts";
import { addressOf } from "../view";

export function Settled({ task }: { task: TaskView }) {
  if (task.resolution === undefined) return null;
  return (
    <section className="waits" aria-label="What became of the task">
      <What resolution={task.resolution} />
      {task.resolution.how === "dismissed" && <Undo id={task.id} />}
    </section>
  );
}

function What({ resolution: { how, at, by, task, status, reason, is_open } }: { resolution: Resolution }) {
  return (
    <p>
      {how === "overtaken" ? "Overtaken" : how === "dismissed" ? "Dismissed" : "Replayed"}
      {how !== "overtaken" && by !== undefined && (
        <>
          {" "}
          by <Copied text={by} label="the principal" />
        </>
      )}
      {at !== undefined && (
        <>
          {" "}
          at <Time at={at} />
        </>
      )}
      {reason !== undefined && `: ${reason}`}
      {task !== undefined && (
        <>
          {how === "overtaken" ? " by " : " as "}
          <a href={addressOf({ page: "task", id: task, tab: "overview" })}>{task}</a>
          {status !== undefined && `: ${status}`}
        </>
      )}
      {is_open && ". The failure is open again"}.
    </p>
  );
}

function Undo({ id }: { id: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const [problem, setProblem] = useState("");
  const undo = async (): Promise<void> => {
    try {
      await client.dismiss(id, { undo: true });
      await queries.invalidateQueries();
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return (
    <p>
      <button type="button" onClick={() => void undo()}>
        Open the failure again
      </button>
      {problem !== "" && <span role="alert"> {problem}</span>}
    </p>
  );
}
