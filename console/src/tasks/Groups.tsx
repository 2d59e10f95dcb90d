/** Failed tasks by their error: "37 × KeyError: 'price' at sales-by-country". A click filters the list. */

import { useQuery } from "@tanstack/react-query";
import { CallError, type Client } from "../api/client";
import { useClient } from "../api/context";
import type { FailureGroup, TaskView } from "../api/types";
import { now } from "../shared/clock";
import { addressOf, type TaskFilter } from "../view";
import { addGroups, groupFailures } from "./failures";
import { earliest } from "./matching";

const SHOWN = 8;
/** Each page reads up to 5,000 failed tasks, so it is polled less often than the list. */
const POLL_MILLISECONDS = 10_000;
const PAGES = 2;

export function Groups({ filter, tasks }: { filter: TaskFilter; tasks: readonly TaskView[] }) {
  const client = useClient();
  const { age, actor, tool, owner, error, retrying } = filter;
  const answer = useQuery({
    queryKey: ["failures", age, actor, tool, owner, error, retrying],
    queryFn: () =>
      allGroups(client, {
        since: age && earliest(age, now()),
        actor,
        tool,
        owner,
        error,
        retrying: retrying ? "true" : undefined,
      }),
    refetchInterval: ({ state }) => (state.error === null ? POLL_MILLISECONDS : false),
    retry: (count, problem) => count < 1 && !isUnavailable(problem),
  });
  const groups = answer.data ?? groupFailures(tasks);
  if (groups.length === 0) return null;
  return (
    <section className="groups" aria-labelledby="groups-title">
      <h2 id="groups-title">{retrying ? "Retried after" : "Failures"}{answer.data === undefined && " among the loaded tasks"}</h2>
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

/** Read the groups of the newest failed tasks, about 10,000. */
async function allGroups(client: Client, query: Record<string, string | undefined>): Promise<FailureGroup[]> {
  let groups: FailureGroup[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES; page += 1) {
    const { items, next_cursor } = await client.failures({ ...query, cursor });
    groups = addGroups(groups, items);
    cursor = next_cursor;
    if (cursor === undefined) break;
  }
  return groups;
}

/** A gateway of an older version has no groups, and a caller that is no operator may not read them. */
function isUnavailable(error: unknown): boolean {
  return error instanceof CallError && [403, 404].includes(error.status);
}

function filterOf(group: FailureGroup, filter: TaskFilter): TaskFilter {
  return {
    ...filter,
    ...(filter.retrying ? {} : { status: "failed" as const }),
    ...(group.actor ? { actor: group.actor } : {}),
    ...(group.error ? { error: group.error } : {}),
  };
}
