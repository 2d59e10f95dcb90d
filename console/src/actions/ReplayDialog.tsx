/** Runs one task again: from where it failed, from a hop, or only the failed slices of its set. */

import { useId, useState } from "react";
import { useClient } from "../api/context";
import type { TaskView } from "../api/types";
import { Dialog } from "../shared/Dialog";
import { addressOf } from "../view";
import { FAILED_SETS, problemOf } from "./bulk";

type Start = { hop?: number; failed_only?: boolean };

/** Return the places from which a task may run again, each with what the reader sees. */
function startsOf(task: TaskView): [string, Start][] {
  const starts: [string, Start][] = [];
  if (FAILED_SETS.has(task.reason ?? "")) starts.push(["only the slices without a result", { failed_only: true }]);
  if (task.status === "failed") starts.push(["where it failed", {}]);
  const { prev = [], curr = "" } = task.route ?? {};
  const passed = curr === "" ? prev : [...prev, curr];
  return [...starts, ...passed.map((actor, hop): [string, Start] => [`hop ${hop}: ${actor}`, { hop }])];
}

export function ReplayDialog({ task, onClose }: { task: TaskView; onClose: () => void }) {
  const client = useClient();
  const field = useId();
  const starts = startsOf(task);
  const [chosen, setChosen] = useState(0);
  const [started, setStarted] = useState("");
  const [problem, setProblem] = useState("");
  const [isSending, setSending] = useState(false);

  const run = async (): Promise<void> => {
    setSending(true);
    setProblem("");
    try {
      setStarted((await client.replay(task.id, starts[chosen]?.[1] ?? {})).id);
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
      <p>A new task starts with a new id. This one stays as it is. A hop needs an actor that keeps its input.</p>
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
      {problem !== "" && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <div className="buttons">
        <button
          type="button"
          className="primary"
          disabled={isSending || starts.length === 0}
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
