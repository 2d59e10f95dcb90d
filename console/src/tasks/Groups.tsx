/** Failed tasks by their error: "37 × KeyError: 'price' at sales-by-country". A click filters the list. */

import { useQuery } from "@tanstack/react-query";
import { CallError } from "../api/client";
import { useClient } from "../api/context";
import type { FailureGroup, TaskView } from "../api/types";
import { addressOf, type TaskFilter } from "../view";
import { groupFailures } from "./failures";
import { earliest } from "./matching";

const SHOWN = 8;
const POLL_MILLISECONDS = 5000;

export function Groups({ filter, tasks }: { filter: TaskFilter; tasks: readonly TaskView[] }) {
  const client = useClient();
  const { age, actor, tool } = filter;
  const answer = useQuery({
    queryKey: ["failures", age, actor, tool],
    queryFn: () => client.failures({ since: age && earliest(age, new Date()), actor, tool }),
    refetchInterval: ({ state }) => (state.error === null ? POLL_MILLISECONDS : false),
    retry: (count, error) => count < 1 && !isUnavailable(error),
  });
  const groups = answer.data?.items ?? groupFailures(tasks);
  if (groups.length === 0) return null;
  return (
    <section className="groups" aria-labelledby="groups-title">
      <h2 id="groups-title">Failures{answer.data === undefined && " among the loaded tasks"}</h2>
      <ul>
        {groups.slice(0, SHOWN).map((group) => (
          <li key={`${group.actor} ${group.error}`}>
            <a href={addressOf({ page: "tasks", filter: filterOf(group, filter) })}>
              <strong>{group.count} ×</strong> <code>{group.error || "no error"}</code> at {group.actor || "no actor"}
            </a>
          </li>
        ))}
      </ul>
      {groups.length > SHOWN && <p className="quiet">and {groups.length - SHOWN} more</p>}
    </section>
  );
}

/** A gateway of an older version has no groups, and a caller that is no operator may not read them. */
function isUnavailable(error: unknown): boolean {
  return error instanceof CallError && [403, 404].includes(error.status);
}

function filterOf(group: FailureGroup, filter: TaskFilter): TaskFilter {
  return {
    ...filter,
    status: "failed",
    ...(group.actor ? { actor: group.actor } : {}),
    ...(group.error ? { error: group.error } : {}),
  };
}
