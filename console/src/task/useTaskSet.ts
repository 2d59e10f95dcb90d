import { useQuery } from "@tanstack/react-query";
import { useClient } from "../api/context";
import { hasEnded, type SetView, type TaskView } from "../api/types";

const POLL_MILLISECONDS = 2000;

/** Read the set of slices that a task waits for; null without one, and from a gateway that does not know sets. */
export function useTaskSet(task: TaskView): SetView | null {
  const client = useClient();
  const found = useQuery({
    queryKey: ["set", task.id, task.generation, task.status],
    queryFn: () => client.taskSet(task.id),
    refetchInterval: hasEnded(task.status) ? false : POLL_MILLISECONDS,
    retry: false,
  });
  return found.data?.set ?? null;
}
