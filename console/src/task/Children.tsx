/** The slices of a fan-out: how many have which status, and each of them in a grid that folds. */

import { useQuery } from "@tanstack/react-query";
import type { Client } from "../api/client";
import { useClient } from "../api/context";
import { hasEnded, type TaskView } from "../api/types";
import { Problem, Status } from "../shared/parts";
import { failureText } from "../tasks/failures";
import { addressOf } from "../view";
import { MissingSlices } from "./MissingSlices";

const POLL_MILLISECONDS = 2000;
const LIMIT = 1000;
const FOLDED = 60;

interface Slices {
  tasks: TaskView[];
  isCut: boolean;
}

export function Children({ task }: { task: TaskView }) {
  const client = useClient();
  const slices = useQuery({
    queryKey: ["children", task.id, task.generation],
    queryFn: () => allChildren(client, task.id),
    refetchInterval: ({ state }) => (isAtWork(task, state.data) ? POLL_MILLISECONDS : false),
  });
  if (slices.error !== null) return <Problem error={slices.error} />;
  if (slices.data === undefined) return <p role="status">Loading…</p>;
  const { tasks, isCut } = slices.data;
  if (tasks.length === 0) {
    // The first slices of a set may not have reported yet.
    return (
      <>
        <p>This task has no children.</p>
        <MissingSlices task={task} slices={tasks} />
      </>
    );
  }
  const byStatus = Object.groupBy(tasks, ({ status }) => status);
  return (
    <>
      <p className="quiet">
        {tasks.length.toLocaleString("en")} children{isCut && ", the newest"}. The task itself is slice 0.
      </p>
      <MissingSlices task={task} slices={tasks} />
      {Object.entries(byStatus).map(([status, some = []]) => (
        <details key={status} open={status !== "succeeded" || some.length <= FOLDED}>
          <summary>
            <Status status={status as TaskView["status"]} /> {some.length.toLocaleString("en")}
          </summary>
          <ul className="slices">
            {some.map((each) => (
              <li key={each.id} className={each.status} title={failureText(each) || undefined}>
                <a href={addressOf({ page: "task", id: each.id, tab: "overview" })}>{each.id}</a>
                <span className="quiet">{each.actor}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </>
  );
}

function isAtWork(task: TaskView, slices: Slices | undefined): boolean {
  return !hasEnded(task.status) || (slices?.tasks.some(({ status }) => !hasEnded(status)) ?? false);
}

async function allChildren(client: Client, id: string): Promise<Slices> {
  const tasks: TaskView[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.children(id, { limit: "100", cursor });
    tasks.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== undefined && tasks.length < LIMIT);
  return { tasks, isCut: cursor !== undefined };
}
