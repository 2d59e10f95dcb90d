import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Client } from "../api/client";
import { useClient } from "../api/context";
import { follow } from "../api/stream";
import { hasEnded, type PartialEvent, type TaskView, type TimelineEntry } from "../api/types";

/** The stream tells most changes; this finds the others, such as a redrive of a task that has ended. */
const POLL_MILLISECONDS = 5000;
const AWAITED_MILLISECONDS = 1000;
/** Events that come within this time make the page read once. */
const TOGETHER_MILLISECONDS = 100;
const ENTRIES_LIMIT = 2000;
const PARTIALS_LIMIT = 2000;

export interface FollowedTask {
  task: TaskView | undefined;
  timeline: readonly TimelineEntry[];
  partials: readonly PartialEvent[];
  error: unknown;
}

/** Read a task with its hops, and follow its stream. */
export function useTask(id: string): FollowedTask {
  const client = useClient();
  const queries = useQueryClient();
  const [partials, setPartials] = useState<readonly PartialEvent[]>([]);
  const task = useQuery({
    queryKey: ["task", id],
    queryFn: () => client.task(id),
    // A record comes when the first actor has received the envelope.
    refetchInterval: ({ state }) => (state.data === undefined ? AWAITED_MILLISECONDS : POLL_MILLISECONDS),
  });
  const generation = task.data?.generation;
  const isKnown = task.data !== undefined;
  const isOver = task.data !== undefined && hasEnded(task.data.status);
  const timeline = useQuery({
    queryKey: ["timeline", id, generation, task.data?.updated_at],
    queryFn: () => wholeTimeline(client, id),
    placeholderData: (before) => before,
    enabled: isKnown,
  });
  useEffect(() => {
    if (!isKnown) return undefined;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readAgain = (): void => {
      timer = undefined;
      void queries.invalidateQueries({ queryKey: ["task", id] });
      void queries.invalidateQueries({ queryKey: ["timeline", id] });
    };
    setPartials([]);
    const read = async (): Promise<void> => {
      for await (const event of follow(client, id, stop.signal)) {
        if (event.type === "partial") {
          const partial = event.data as PartialEvent;
          setPartials((before) => [...before, partial].slice(-PARTIALS_LIMIT));
        } else {
          timer ??= setTimeout(readAgain, TOGETHER_MILLISECONDS);
        }
      }
    };
    void read();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
    // A redrive begins a new generation, and a replayed or resumed task goes on: the stream begins again.
  }, [client, queries, id, isKnown, generation, isOver]);
  return { task: task.data, timeline: timeline.data ?? [], partials, error: task.error ?? timeline.error };
}

async function wholeTimeline(client: Client, id: string): Promise<TimelineEntry[]> {
  const entries: TimelineEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.timeline(id, { cursor });
    entries.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== undefined && entries.length < ENTRIES_LIMIT);
  return entries;
}
