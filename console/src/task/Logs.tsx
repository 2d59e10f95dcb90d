/** What functions and job runs have logged about a task. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { CallError } from "../api/client";
import { useClient } from "../api/context";
import type { TaskView } from "../api/types";
import { Problem, Time } from "../shared/parts";

const PAGE_SIZE = "200";

export function Logs({ task }: { task: TaskView }) {
  const client = useClient();
  const pages = useInfiniteQuery({
    queryKey: ["logs", task.id],
    queryFn: ({ pageParam }) => client.logs(task.id, { limit: PAGE_SIZE, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    retry: false,
    refetchOnWindowFocus: false,
  });
  if (pages.error !== null) {
    const { error } = pages;
    if (error instanceof CallError && [403, 404].includes(error.status)) {
      return <p>Operators alone read logs here. {error.status === 404 && "This gateway has no lines of tasks."}</p>;
    }
    return <Problem error={error} />;
  }
  if (pages.data === undefined) return <p role="status">Loading…</p>;
  const lines = pages.data.pages.flatMap(({ items }) => items);
  return (
    <>
      {lines.length === 0 && !pages.hasNextPage && <p>Nothing was logged about this task.</p>}
      <ol className="log" aria-label="Lines">
        {lines.map((each) => (
          <li key={each.id}>
            <span className="quiet">
              {each.at && <Time at={each.at} />} {each.actor} {each.worker}
            </span>{" "}
            <code>{each.line}</code>
          </li>
        ))}
      </ol>
      <div className="buttons">
        {pages.hasNextPage && (
          <button type="button" disabled={pages.isFetching} onClick={() => void pages.fetchNextPage()}>
            More lines
          </button>
        )}
        <button type="button" disabled={pages.isFetching} onClick={() => void pages.refetch()}>
          Read again
        </button>
      </div>
    </>
  );
}
