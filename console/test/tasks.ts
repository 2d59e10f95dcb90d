import type { TaskView } from "../src/api/types";

/** A task; a larger number is younger. */
export function task(number: number, more: Partial<TaskView> = {}): TaskView {
  const at = new Date(Date.UTC(2026, 10, 25, 12, 0, 0) + number * 1000).toISOString();
  return {
    id: `task-${number}`,
    status: "running",
    progress_percent: 40,
    created_at: at,
    updated_at: at,
    generation: 0,
    ...more,
  };
}

export function ids(tasks: readonly TaskView[]): string[] {
  return tasks.map(({ id }) => id);
}
