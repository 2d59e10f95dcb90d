/** Failed tasks by their error: "37 × KeyError: 'price' at sales-by-country". A click filters the list. */

import { useQuery } from "@tanstack/react-query";
import { CallError, type Client } from "../api/client";
import { useClient } from "../api/context";
import type { FailureGroup, TaskView } from "../api/types";
import { now } from "../shared/clock";
import { counted } from "../shared/format";
import { addressOf, type TaskFilter } from "../view";
import { addGroups, groupFailures } from "./failures";
import { earliest } from "./matching";

const SHOWN = 8;
/** Each page reads up to 5,000 failed tasks, so it is polled less often than the list. */
const POLL_MILLISECONDS = 10_000;
const PAGES = 2;

export function Groups({ filter, tasks }: { filter: TaskFilter; tasks: readonly TaskView[] }) {
  const client = useClient();
  const { age, actor, tool, owner, error, retrying, resolved } = filter;
  const answer = useQuery({
    queryKey: ["failures", age, actor, tool, owner, error, retrying, resolved],
    queryFn: () =>
      allGroups(client, {
        since: age && earliest(age, now()),
        actor,
        tool,
        owner,
        error,
        retrying: retrying ? "true" : undefined,
        resolved: resolved ? "true" : undefined,
      }),
    refetchInterval: ({ state }) => (state.error === null ? POLL_MILLISECONDS : false),
    retry: (count, problem) => count < 1 && !isUnavailable(problem),
  });
  const groups = answer.data?.groups ?? groupFailures(tasks);
  const settled = answer.data?.settled ?? 0;
  if (groups.length === 0 && settled === 0) return null;
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
      {settled > 0 && (
        <p className="quiet">
          {groups.length === 0 && "No open failures. "}
          <a href={addressOf({ page: "tasks", filter: { ...filter, status: "failed", resolved: true } })}>
            {counted(settled, "settled failure")}
          </a>
        </p>
      )}
    </section>
  );
}

interface AllGroups {
  groups: FailureGroup[];
  /** Failed tasks that are left out, because they are settled. */
  settled: number;
}

/** Read the groups of the newest failed tasks, about 10,000. */
async function allGroups(client: Client, query: Record<string, string | undefined>): Promise<AllGroups> {
  let groups: FailureGroup[] = [];
  let settled = 0;
  let cursor: string | undefined;
  for (let page = 0; page < PAGES; page += 1) {
    const { items, resolved = 0, next_cursor } = await client.failures({ ...query, cursor });
    groups = addGroups(groups, items);
    settled += resolved;
    cursor = next_cursor;
    if (cursor === undefined) break;
  }
  return { groups, settled };
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
