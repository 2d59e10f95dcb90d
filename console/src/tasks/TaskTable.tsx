/** The table of tasks. Only the rows near the screen are in the document. */

import {
  createColumnHelper,
  type RowSelectionState,
  rowSelectionFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useRef } from "react";
import type { Cancellation, TaskView } from "../api/types";
import { shortTime } from "../shared/format";
import { Copy, Status, Time } from "../shared/parts";
import { useIsNarrow } from "../shared/useIsNarrow";
import { addressOf } from "../view";
import { failureText, resolutionText, retryText } from "./failures";
import type { Feed } from "./useFeed";

const ROW_PIXELS = 36;
const NARROW_ROW_PIXELS = 64;
const OVERSCAN = 8;
/** Rows before the end at which older tasks are read. */
const AHEAD = 40;

const features = tableFeatures({ rowSelectionFeature });
const column = createColumnHelper<typeof features, TaskView>();
const columns = column.columns([
  column.display({
    id: "select",
    header: ({ table }) => (
      <input
        type="checkbox"
        aria-label="Select all loaded tasks"
        disabled={table.getRowModel().rows.length === 0}
        checked={table.getIsAllRowsSelected()}
        onChange={table.getToggleAllRowsSelectedHandler()}
      />
    ),
    cell: ({ row }) => (
      <input
        type="checkbox"
        aria-label={`Select ${row.original.id}`}
        checked={row.getIsSelected()}
        onChange={row.getToggleSelectedHandler()}
      />
    ),
  }),
  column.accessor("status", { header: "Status", cell: ({ row }) => <Status status={row.original.status} /> }),
  column.accessor("id", { header: "Task", cell: ({ row }) => <TaskLink task={row.original} /> }),
  column.accessor((task) => task.tool ?? "", { id: "tool", header: "Tool" }),
  column.accessor((task) => task.actor ?? "", { id: "actor", header: "Actor" }),
  column.accessor(noteOf, { id: "note", header: "Error or progress" }),
  column.accessor("created_at", { header: "Created", cell: ({ row }) => <Time at={row.original.created_at} /> }),
  column.accessor("updated_at", { header: "Changed", cell: ({ row }) => <Time at={row.original.updated_at} /> }),
]);

function canceledBy({ by, root }: Cancellation): string {
  return by === undefined ? `with its root ${root ?? ""}` : `by ${by}`;
}

/** Return what a row says about its task: why it failed, what it waits for, how far it is. */
function noteOf(task: TaskView): string {
  const failure = failureText(task);
  if (task.canceled !== undefined && task.error === undefined) return `${failure} ${canceledBy(task.canceled)}`;
  if (task.resolution !== undefined) return `${resolutionText(task.resolution)} — ${failure}`;
  if (failure !== "") return failure;
  if (task.pause !== undefined) return task.pause.prompt;
  if (task.waiting_until !== undefined) return `waits until ${shortTime(task.waiting_until)}`;
  if (task.problem !== undefined) return `${task.problem.type}: ${task.problem.message}`;
  if (task.retry !== undefined) return retryText(task.retry);
  return task.status === "running" ? `${task.progress_percent} %` : "";
}

function TaskLink({ task }: { task: TaskView }) {
  return (
    <span className="id">
      <a href={addressOf({ page: "task", id: task.id, tab: "overview" })}>{task.id}</a>
      <Copy text={task.id} label={`the id ${task.id}`} />
    </span>
  );
}

interface TaskTableProps {
  feed: Feed;
  selected: RowSelectionState;
  onSelect: (change: (before: RowSelectionState) => RowSelectionState) => void;
}

export function TaskTable({ feed, selected, onSelect }: TaskTableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const rowPixels = useIsNarrow() ? NARROW_ROW_PIXELS : ROW_PIXELS;
  const table = useTable({
    features,
    columns,
    data: feed.tasks,
    getRowId: (task) => task.id,
    state: { rowSelection: selected },
    onRowSelectionChange: (change) => onSelect((before) => (typeof change === "function" ? change(before) : change)),
  });
  const rows = table.getRowModel().rows;
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPixels,
    overscan: OVERSCAN,
    getItemKey: (index) => rows[index]?.id ?? index,
  });
  useEffect(() => virtualizer.measure(), [virtualizer, rowPixels]);
  const shown = virtualizer.getVirtualItems();
  const first = shown[0]?.index ?? 0;
  const last = shown.at(-1)?.index ?? 0;
  const { onRange, loadMore, hasMore, isLoading } = feed;
  useEffect(() => onRange(first, last), [onRange, first, last]);
  useEffect(() => {
    if (hasMore && !isLoading && last >= rows.length - AHEAD) loadMore();
  }, [hasMore, isLoading, loadMore, last, rows.length]);

  const above = shown[0]?.start ?? 0;
  const below = virtualizer.getTotalSize() - (shown.at(-1)?.end ?? 0);
  const moveFocus = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const from = (event.target as HTMLElement).closest("tr")?.dataset["index"];
    if (step === 0 || from === undefined) return;
    const index = Math.min(Math.max(Number(from) + step, 0), rows.length - 1);
    event.preventDefault();
    const focusRow = (): boolean => {
      const link = scroller.current?.querySelector<HTMLElement>(`tr[data-index="${index}"] .id a`);
      link?.focus();
      return link != null;
    };
    virtualizer.scrollToIndex(index);
    if (!focusRow()) requestAnimationFrame(focusRow);
  };

  return (
    <div className="scroller" ref={scroller} tabIndex={0} role="region" aria-label="Tasks, newest first">
      <table className="tasks" aria-rowcount={rows.length + 1} onKeyDown={moveFocus}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} aria-rowindex={1}>
              {group.headers.map((header) => (
                <th key={header.id} scope="col" className={header.column.id}>
                  <table.FlexRender header={header} />
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          <Gap pixels={above} />
          {shown.map(({ index, key }) => {
            const row = rows[index];
            if (row === undefined) return null;
            return (
              <tr
                key={key}
                data-index={index}
                aria-rowindex={index + 2}
                style={{ height: rowPixels }}
                className={row.getIsSelected() ? "task selected" : "task"}
              >
                {row.getAllCells().map((cell) => (
                  <td key={cell.id} className={cell.column.id}>
                    <table.FlexRender cell={cell} />
                  </td>
                ))}
              </tr>
            );
          })}
          <Gap pixels={below} />
        </tbody>
      </table>
      {rows.length === 0 && !isLoading && <p className="nothing">No task is selected by these filters.</p>}
    </div>
  );
}

/** The place of the rows that are not in the document. */
function Gap({ pixels }: { pixels: number }) {
  if (pixels <= 0) return null;
  return (
    <tr aria-hidden="true" className="gap" style={{ height: pixels }}>
      <td colSpan={columns.length} />
    </tr>
  );
}
