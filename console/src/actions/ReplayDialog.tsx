/** Runs one task again: from where it failed, from a hop, or only the failed slices of its set. */

import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { useClient } from "../api/context";
import { isOpenFailure, type KeptHop, type TaskView } from "../api/types";
import { Dialog } from "../shared/Dialog";
import { addressOf } from "../view";
import { FAILED_SETS, problemOf } from "./bulk";

type Start = { hop?: number; checkpoint?: number; failed_only?: boolean; force?: boolean };

/**
 * Return the places from which a task may run again, each with what the reader sees.
 *
 * @param kept - Its hops with kept payloads. A gateway of an older version does not say where a payload is from.
 */
export function startsOf(task: TaskView, kept: readonly KeptHop[]): [string, Start][] {
  const starts: [string, Start][] = [];
  if (FAILED_SETS.has(task.reason ?? "")) starts.push(["only the slices without a result", { failed_only: true }]);
  if (task.status === "failed") starts.push(["where it failed", {}]);
  for (const { hop, actor, before, copy } of kept) {
    if (copy === "checkpoint") starts.push([`checkpoint ${hop}: ${actor}`, { checkpoint: hop }]);
    else if (copy === "input" || (copy === undefined && before)) starts.push([`hop ${hop}: ${actor}`, { hop }]);
  }
  return starts;
}

export function ReplayDialog({ task, onClose }: { task: TaskView; onClose: () => void }) {
  const client = useClient();
  const field = useId();
  const kept = useQuery({
    queryKey: ["payloads", task.id, task.updated_at],
    queryFn: () => client.payloads(task.id),
    retry: false,
  });
  const starts = startsOf(task, kept.data?.items ?? []);
  const [chosen, setChosen] = useState(0);
  const isSettled = task.resolution !== undefined && !isOpenFailure(task) && task.resolution.is_open !== true;
  const [isForced, setForced] = useState(false);
  const [started, setStarted] = useState("");
  const [problem, setProblem] = useState("");
  const [isSending, setSending] = useState(false);

  const run = async (): Promise<void> => {
    setSending(true);
    setProblem("");
    try {
      setStarted((await client.replay(task.id, { ...starts[chosen]?.[1], ...(isForced ? { force: true } : {}) })).id);
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setSending(false);
    }
  };

  if (started !== "") {
    return (
      <Dialog title="Replay: started" onClose={onClose}>
        <p>
          The new task is <a href={addressOf({ page: "task", id: started, tab: "overview" })}>{started}</a>.
        </p>
        <div className="buttons">
          <button type="button" onClick={onClose}>
            Close
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Replay 1 task?" onClose={onClose}>
      <p>A new task starts with a new id. This one stays as it is. Only hops whose input is kept are offered.</p>
      {starts.length === 0 && !kept.isPending && (
        <p className="problem">No input of this task is kept (`keep_input` of its actors): call its tool again instead.</p>
      )}
      <div className="field">
        <label htmlFor={field}>Start from</label>
        <select id={field} value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
          {starts.map(([text], index) => (
            <option key={text} value={index}>
              {text}
            </option>
          ))}
        </select>
      </div>
      {isSettled && (
        <label className="check">
          <input type="checkbox" checked={isForced} onChange={(event) => setForced(event.target.checked)} />
          once more, although it is settled
        </label>
      )}
      {problem !== "" && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <div className="buttons">
        <button
          type="button"
          className="primary"
          disabled={isSending || starts.length === 0 || (isSettled && !isForced)}
          onClick={() => void run()}
        >
          Replay 1 task
        </button>
        <button type="button" onClick={onClose}>
          Keep as it is
        </button>
      </div>
    </Dialog>
  );
}
