/** The question of a paused task, what it shows of the payload, and a form for its answers. */

import { useQueryClient } from "@tanstack/react-query";
import { useClient } from "../api/context";
import type { TaskPause, TaskView } from "../api/types";
import { Time } from "../shared/parts";
import { AnswerForm } from "./AnswerForm";
import { Shown } from "./Shown";

export function PauseForm({ task, pause }: { task: TaskView; pause: TaskPause }) {
  const client = useClient();
  const queries = useQueryClient();
  const send = async (input: string): Promise<void> => {
    // The reader answers the question that stands here, and not one that has taken its place meanwhile.
    await client.resume(task.id, input, pause.since);
    await queries.invalidateQueries({ queryKey: ["task", task.id] });
  };
  return (
    <section className="pause" aria-labelledby="pause-title">
      <h2 id="pause-title" className="lines">
        {pause.prompt}
      </h2>
      <p className="quiet">
        waiting since <Time at={pause.since} />
      </p>
      <Shown values={pause.shown ?? []} />
      {/* The form of another question begins anew. */}
      <AnswerForm key={pause.since} fields={pause.fields} label="Answer" send={send} />
    </section>
  );
}
