/** Asks before an action, and tells what became of each task. */

import { useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { useClient } from "../api/context";
import type { TaskView } from "../api/types";
import { Dialog } from "../shared/Dialog";
import { counted } from "../shared/format";
import { type Action, actOnAll, applies, type Outcome, type Progress } from "./bulk";
import { Outcomes } from "./Outcomes";

const VERBS: Record<Action, string> = { cancel: "Cancel", replay: "Replay", redrive: "Redrive", dismiss: "Dismiss" };
const EFFECTS: Record<Action, string> = {
  cancel: "Each stops before its next hop, with its children and its job runs.",
  replay: "Each failed task runs again as a new task, from the hop that failed. A failed slice runs again with its set.",
  dismiss: "Each task stays failed, and lists of open failures leave it out: nothing has to be done about it.",
  redrive: "Each dead letter is sent to its actor again, in the next generation of its task. Repair the cause first.",
};

interface ActionDialogProps {
  action: Action;
  tasks: readonly TaskView[];
  onClose: () => void;
}

export function ActionDialog({ action, tasks, onClose }: ActionDialogProps) {
  const client = useClient();
  const queries = useQueryClient();
  const [progress, setProgress] = useState<Progress | null>(null);
  const [outcomes, setOutcomes] = useState<Outcome[] | null>(null);
  const [reason, setReason] = useState("");
  const field = useId();
  const chosen = tasks.filter((task) => applies(action, task));
  const title = `${VERBS[action]} ${counted(chosen.length, "task")}?`;

  const run = async (): Promise<void> => {
    setProgress({ done: 0, total: chosen.length });
    setOutcomes(await actOnAll(client, action, chosen, setProgress, reason.trim()));
    await queries.invalidateQueries();
  };

  return (
    <Dialog title={outcomes === null ? title : `${VERBS[action]}: done`} onClose={onClose}>
      {outcomes === null ? (
        <>
          <p>{EFFECTS[action]}</p>
          {chosen.length < tasks.length && <p>{leftOut(action, tasks.length - chosen.length)}</p>}
          {action === "dismiss" && (
            <div className="field">
              <label htmlFor={field}>Why nothing has to be done</label>
              <input
                id={field}
                type="text"
                maxLength={1024}
                value={reason}
                onChange={(event) => setReason(event.target.value)}
              />
            </div>
          )}
        </>
      ) : (
        <Outcomes outcomes={outcomes} />
      )}
      <p role="status">
        {progress !== null && outcomes === null && `${progress.done} of ${counted(progress.total, "task")} done`}
      </p>
      <div className="buttons">
        {outcomes === null && (
          <button
            type="button"
            className="primary"
            disabled={progress !== null || chosen.length === 0 || (action === "dismiss" && reason.trim() === "")}
            onClick={() => void run()}
          >
            {VERBS[action]} {counted(chosen.length, "task")}
          </button>
        )}
        <button type="button" onClick={onClose}>
          {outcomes === null ? "Keep as it is" : "Close"}
        </button>
      </div>
    </Dialog>
  );
}

function leftOut(action: Action, count: number): string {
  const why = action === "cancel" ? "ended already" : "not failed, or settled";
  return `${counted(count, "selected task")} left out: ${why}.`;
}
