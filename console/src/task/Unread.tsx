import { useQuery } from "@tanstack/react-query";
import { useClient } from "../api/context";
import { hasEnded, isPaused, type TaskView } from "../api/types";
import { Copied } from "../shared/Facts";
import { addressOf } from "../view";
import { queuesOf } from "./queues";
import { useTaskSet } from "./useTaskSet";

const POLL_MILLISECONDS = 10_000;
const CHILDREN = "100";

/** The queues on which a task or its slices may wait, and which no function reads; for operators. */
export function Unread({ task }: { task: TaskView }) {
  const client = useClient();
  // A slice has no task until a function has received it, so each queue with messages may hold it.
  const lacksSlices = (useTaskSet(task)?.missing.length ?? 0) > 0;
  const found = useQuery({
    queryKey: ["unread", task.id, task.updated_at, lacksSlices],
    queryFn: async () => {
      const { items } = await client.children(task.id, { limit: CHILDREN });
      const queues = queuesOf([task, ...items]);
      if (queues.length === 0 && !lacksSlices) return [];
      const { actors } = await client.mesh(lacksSlices ? undefined : queues);
      // A gateway of an older version answers with all actors.
      return actors.filter(({ name, waiting }) => queues.includes(name) || (lacksSlices && waiting > 0));
    },
    enabled: !hasEnded(task.status) && !isPaused(task.status),
    refetchInterval: POLL_MILLISECONDS,
    retry: false,
  });
  // Callers who are no operators get an error, and see nothing.
  return (found.data ?? []).map(
    ({ name, not_read: unread }) =>
      unread != null && (
        <p key={name} className="problem">
          The queue of <a href={addressOf({ page: "actor", actor: name, tab: "overview" })}>{name}</a> is not read: {unread.reason}
          <span className="repair">
            <Copied text={unread.repair} label="what repairs it" />
          </span>
        </p>
      ),
  );
}
