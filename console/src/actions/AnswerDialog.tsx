/** Gives one answer to the same question of many tasks. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useClient } from "../api/context";
import type { TaskView } from "../api/types";
import { Dialog } from "../shared/Dialog";
import { counted } from "../shared/format";
import { AnswerForm } from "../task/AnswerForm";
import { answerAll, asksSomething, type Outcome, placesOf, type Progress } from "./bulk";
import { Outcomes } from "./Outcomes";

const MOST_QUESTIONS = 20;

export function AnswerDialog({ tasks, onClose }: { tasks: readonly TaskView[]; onClose: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  // The list behind the dialog is live: the answer is for the questions that the reader has selected.
  const [chosen] = useState(() => tasks.filter(asksSomething));
  const [leftOut] = useState(tasks.length - chosen.length);
  const [progress, setProgress] = useState<Progress | null>(null);
  const [outcomes, setOutcomes] = useState<Outcome[] | null>(null);
  const places = placesOf(chosen);
  const title = `Answer ${counted(chosen.length, "task")}`;

  const send = async (input: string): Promise<void> => {
    setProgress({ done: 0, total: chosen.length });
    setOutcomes(await answerAll(client, chosen, input, setProgress));
    await queries.invalidateQueries();
  };

  return (
    <Dialog title={outcomes === null ? `${title}?` : "Answer: done"} onClose={onClose}>
      {outcomes !== null && <Outcomes outcomes={outcomes} />}
      {outcomes === null && places.length > 1 && (
        <p className="problem" role="alert">
          One answer is for one question, and these tasks wait at {places.join(", ")}. Select those of one actor.
        </p>
      )}
      {outcomes === null && places.length === 1 && (
        <>
          <Questions tasks={chosen} />
          {leftOut > 0 && <p>{counted(leftOut, "selected task")} left out: no answer is waited for.</p>}
          <div className="pause">
            <AnswerForm fields={chosen[0]?.pause?.fields ?? []} label={title} send={send} />
          </div>
        </>
      )}
      <p role="status">
        {progress !== null && outcomes === null && `${progress.done} of ${counted(progress.total, "task")} done`}
      </p>
      <div className="buttons">
        <button type="button" onClick={onClose}>
          {outcomes === null ? "Keep as it is" : "Close"}
        </button>
      </div>
    </Dialog>
  );
}

/** The different questions, each with how many tasks ask it. */
function Questions({ tasks }: { tasks: readonly TaskView[] }) {
  const counts = new Map<string, number>();
  for (const { pause } of tasks) if (pause !== undefined) counts.set(pause.prompt, (counts.get(pause.prompt) ?? 0) + 1);
  const listed = [...counts].slice(0, MOST_QUESTIONS);
  return (
    <ul className="questions">
      {listed.map(([prompt, count]) => (
        <li key={prompt} className="lines">
          {prompt}
          {count > 1 && ` (${counted(count, "task")})`}
        </li>
      ))}
      {counts.size > listed.length && <li>and {counted(counts.size - listed.length, "other question")}</li>}
    </ul>
  );
}
