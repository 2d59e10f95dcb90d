/** Lines that functions or job runs have logged, a page at a time. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { CallError } from "../api/client";
import type { LogLine } from "../api/types";
import { isMetric } from "./metrics";
import { Problem, Time } from "./parts";

const PAGE_SIZE = "200";

interface LogLinesProps {
  /** What the lines are of: the key under which they are kept. */
  subject: readonly unknown[];
  read: (query: { limit: string; cursor: string | undefined }) => Promise<{ items: LogLine[]; next_cursor?: string }>;
  /** What is said if there is no line. */
  nothing: string;
}

export function LogLines({ subject, read, nothing }: LogLinesProps) {
  const [hasMetrics, setHasMetrics] = useState(false);
  const pages = useInfiniteQuery({
    queryKey: ["logs", ...subject],
    queryFn: ({ pageParam }) => read({ limit: PAGE_SIZE, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    retry: false,
    refetchOnWindowFocus: false,
  });
  if (pages.error !== null && pages.data === undefined) return <Refused error={pages.error} />;
  if (pages.data === undefined) return <p role="status">Loading…</p>;
  const all = pages.data.pages.flatMap(({ items }) => items);
  const lines = hasMetrics ? all : all.filter(({ line }) => !isMetric(line));
  return (
    <>
      {(hasMetrics || lines.length < all.length) && (
        <label className="choice">
          <input type="checkbox" checked={hasMetrics} onChange={({ target }) => setHasMetrics(target.checked)} /> Metrics
        </label>
      )}
      {lines.length === 0 && <p>{pages.hasNextPage ? "There is no line so far." : nothing}</p>}
      <ol className="log" aria-label="Lines">
        {lines.map((each) => (
          <li key={each.id}>
            <span className="quiet">
              {each.at && <Time at={each.at} />} {each.actor} {each.worker} {each.stream}
            </span>{" "}
            <code>{each.line}</code>
            {each.truncated && <span className="quiet"> (cut)</span>}
          </li>
        ))}
      </ol>
      {pages.error !== null && <Problem error={pages.error} />}
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

/** Why an answer for operators is missing: the caller is none, or the gateway is older than the console. */
export function Refused({ error }: { error: unknown }) {
  if (error instanceof CallError && error.status === 403) {
    return <p className="problem" role="alert">Operators alone see this. {error.message}</p>;
  }
  return <Problem error={error} />;
}
