/** What functions and job runs have logged about a task. */

import { useClient } from "../api/context";
import type { TaskView } from "../api/types";
import { LogLines } from "../shared/LogLines";

export function Logs({ task }: { task: TaskView }) {
  const client = useClient();
  return (
    <LogLines
      subject={["task", task.id]}
      read={(query) => client.logs(task.id, query)}
      nothing="Nothing was logged about this task."
    />
  );
}
