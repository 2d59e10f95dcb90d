/** The list of tasks, newest first and live, with filters, groups of failures, and actions on many. */

import type { RowSelectionState } from "@tanstack/react-table";
import { useState } from "react";
import { ActionDialog } from "../actions/ActionDialog";
import { AnswerDialog } from "../actions/AnswerDialog";
import { ACTIONS, type Action, applies, asksSomething } from "../actions/bulk";
import type { TaskView } from "../api/types";
import { counted } from "../shared/format";
import { Problem } from "../shared/parts";
import type { TaskFilter } from "../view";
import { FilterBar } from "./FilterBar";
import { Groups } from "./Groups";
import { TaskTable } from "./TaskTable";
import { type Feed, useFeed } from "./useFeed";

export function TasksPage({ filter }: { filter: TaskFilter }) {
  const key = JSON.stringify(filter);
  return (
    <>
      <h1>Tasks</h1>
      <FilterBar filter={filter} />
      <TaskList key={key} filter={filter} />
    </>
  );
}

function TaskList({ filter }: { filter: TaskFilter }) {
  const feed = useFeed(filter);
  const [selected, setSelected] = useState<RowSelectionState>({});
  const [action, setAction] = useState<Action | "answer" | null>(null);
  const chosen = feed.tasks.filter((task) => selected[task.id]);
  const close = (): void => {
    setAction(null);
    setSelected({});
  };
  return (
    <>
      <Groups filter={filter} tasks={feed.tasks} />
      {feed.error !== null && <Problem error={feed.error} />}
      <div className="listing">
        <p className="count" role="status">
          {feed.isLoading ? "Loading…" : countOf(feed)}
        </p>
        {feed.hasMore && !feed.isLoading && (
          <button type="button" onClick={() => void feed.loadAll()}>
            Load all
          </button>
        )}
        <Actions chosen={chosen} onAct={setAction} onClear={() => setSelected({})} />
      </div>
      <TaskTable feed={feed} selected={selected} onSelect={setSelected} />
      {action === "answer" && <AnswerDialog tasks={chosen} onClose={close} />}
      {action !== null && action !== "answer" && <ActionDialog action={action} tasks={chosen} onClose={close} />}
    </>
  );
}

function countOf({ tasks, hasMore, isFull }: Feed): string {
  if (isFull) return `the newest ${counted(tasks.length, "task")}; a filter shows older ones`;
  return `${counted(tasks.length, "task")}${hasMore ? " loaded" : ""}`;
}

const LABELS: Record<Action, string> = { cancel: "Cancel…", replay: "Replay…", redrive: "Redrive…", dismiss: "Dismiss…" };

interface ActionsProps {
  chosen: readonly TaskView[];
  onAct: (action: Action | "answer") => void;
  onClear: () => void;
}

function Actions({ chosen, onAct, onClear }: ActionsProps) {
  if (chosen.length === 0) return null;
  return (
    <div className="actions" role="group" aria-label="Actions on the selected tasks">
      <span>{chosen.length.toLocaleString("en")} selected</span>
      {ACTIONS.map((action) => (
        <button
          type="button"
          key={action}
          disabled={!chosen.some((task) => applies(action, task))}
          onClick={() => onAct(action)}
        >
          {LABELS[action]}
        </button>
      ))}
      <button type="button" disabled={!chosen.some(asksSomething)} onClick={() => onAct("answer")}>
        Answer…
      </button>
      <button type="button" onClick={onClear}>
        Clear the selection
      </button>
    </div>
  );
}
