import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useClient } from "../api/context";
import { now } from "../shared/clock";
import type { TaskFilter } from "../view";
import { type FeedState, TaskFeed } from "./feed";

/** A task appears and changes within a second: the pause between two polls, and the call itself. */
const POLL_MILLISECONDS = 600;
const SLOW_MILLISECONDS = 10_000;
const NONE: FeedState = { tasks: [], hasMore: true, isFull: false };

export interface Feed extends FeedState {
  isLoading: boolean;
  error: unknown;
  /** Read older tasks. */
  loadMore: () => void;
  /** Read all tasks, 10,000 at most. */
  loadAll: () => Promise<void>;
  /** Say which rows are on the screen, so that they are read again. */
  onRange: (first: number, last: number) => void;
}

/** Read the tasks of a filter, and follow them while the page is visible. */
export function useFeed(filter: TaskFilter): Feed {
  const client = useClient();
  const feed = useMemo(() => new TaskFeed(client, filter, now()), [client, filter]);
  const range = useRef({ first: 0, last: 0 });
  const [older, setOlder] = useState<{ state: FeedState; error: unknown } | null>(null);
  const isReading = useRef(false);

  const poll = useQuery({
    queryKey: ["tasks", filter],
    queryFn: () => feed.refresh(range.current.first, range.current.last),
    structuralSharing: false,
    refetchInterval: ({ state }) => (state.error === null ? POLL_MILLISECONDS : SLOW_MILLISECONDS),
    retry: false,
    gcTime: 0,
  });
  useEffect(() => setOlder(null), [poll.data]);

  const read = useCallback(async (reading: () => Promise<FeedState>): Promise<void> => {
    try {
      setOlder({ state: await reading(), error: null });
    } catch (error) {
      setOlder((before) => ({ state: before?.state ?? NONE, error }));
    }
  }, []);
  const loadMore = useCallback(() => {
    if (isReading.current) return;
    isReading.current = true;
    void read(() => feed.more()).finally(() => {
      isReading.current = false;
    });
  }, [feed, read]);
  const loadAll = useCallback(() => read(() => feed.all()), [feed, read]);
  const onRange = useCallback((first: number, last: number) => {
    range.current = { first, last };
  }, []);

  const state = older?.error === null ? older.state : (poll.data ?? NONE);
  return {
    tasks: state.tasks,
    hasMore: state.hasMore,
    isFull: state.isFull,
    isLoading: poll.isPending,
    error: older?.error ?? poll.error,
    loadMore,
    loadAll,
    onRange,
  };
}
