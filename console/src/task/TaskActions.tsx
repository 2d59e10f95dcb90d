/** What can be done about one task. */

import { useState } from "react";
import { ActionDialog } from "../actions/ActionDialog";
import { type Action, applies, whyNoRedrive } from "../actions/bulk";
import { ReplayDialog } from "../actions/ReplayDialog";
import type { TaskView } from "../api/types";

export function TaskActions({ task }: { task: TaskView }) {
  const [action, setAction] = useState<Action | null>(null);
  const noRedrive = whyNoRedrive(task);
  const close = (): void => setAction(null);
  return (
    <div className="actions" role="group" aria-label="Actions on this task">
      <button type="button" disabled={!applies("cancel", task)} onClick={() => setAction("cancel")}>
        Cancel…
      </button>
      <button type="button" onClick={() => setAction("replay")}>
        Replay…
      </button>
      <button
        type="button"
        disabled={!applies("redrive", task)}
        title={noRedrive || undefined}
        onClick={() => setAction("redrive")}
      >
        Redrive…
      </button>
      <button type="button" disabled={!applies("dismiss", task)} onClick={() => setAction("dismiss")}>
        Dismiss…
      </button>
      {noRedrive !== "" && <span className="quiet">{noRedrive}</span>}
      {action === "replay" && <ReplayDialog task={task} onClose={close} />}
      {action !== null && action !== "replay" && <ActionDialog action={action} tasks={[task]} onClose={close} />}
    </div>
  );
}
