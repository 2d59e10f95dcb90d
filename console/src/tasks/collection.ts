/**
 * The tasks of one list, newest first, put together from pages.
 *
 * A page is read again to see what has changed. What lies between its first and its last task, and is not in it any more, has left
 * the list: its status is another one now.
 */

import type { Page, TaskView } from "../api/types";

interface KnownPage {
  /** The cursor with which the page is read; undefined for the newest page. */
  cursor: string | undefined;
  /** The creation of the last task of the page. */
  oldest: string;
}

export class TaskCollection {
  private readonly byId = new Map<string, TaskView>();
  private readonly pages: KnownPage[] = [];
  private order: TaskView[] | null = null;
  private following: string | undefined;
  private isStarted = false;

  /** The tasks, newest first. The array changes when a task does, and only then. */
  get tasks(): readonly TaskView[] {
    this.order ??= [...this.byId.values()].sort(newestFirst);
    return this.order;
  }

  /** Whether older tasks can be read. */
  get hasMore(): boolean {
    return !this.isStarted || this.following !== undefined;
  }

  /** The cursor of the older tasks; undefined before the first page. */
  get next(): string | undefined {
    return this.following;
  }

  /** Add the page that follows the known ones. */
  append(page: Page<TaskView>, accepts: (task: TaskView) => boolean): void {
    const cursor = this.following;
    this.isStarted = true;
    this.following = page.next_cursor;
    const last = page.items.at(-1);
    if (last !== undefined) this.pages.push({ cursor, oldest: last.created_at });
    for (const task of page.items) if (accepts(task)) this.put(task);
  }

  /**
   * Take a page that was read again.
   *
   * @param cursor The cursor with which it was read; undefined for the newest page.
   * @returns Whether the page meets what was known: else more tasks are new than one page has.
   */
  refresh(page: Page<TaskView>, cursor: string | undefined, accepts: (task: TaskView) => boolean): boolean {
    const isWhole = page.next_cursor === undefined;
    const newest = cursor === undefined ? undefined : page.items[0]?.created_at;
    const oldest = page.items.at(-1)?.created_at;
    const isMet = isWhole || this.byId.size === 0 || page.items.some((task) => this.byId.has(task.id));
    const present = new Set(page.items.map((task) => task.id));
    for (const task of this.byId.values()) {
      const isBelowTop = cursor === undefined || (newest !== undefined && task.created_at < newest);
      const isAboveEnd = isWhole || (oldest !== undefined && task.created_at > oldest);
      if (isBelowTop && isAboveEnd && !present.has(task.id)) this.remove(task.id);
    }
    for (const task of page.items) {
      if (accepts(task)) this.put(task);
      else this.remove(task.id);
    }
    return isMet;
  }

  /** Return the cursors of the pages, beyond the newest one, that have tasks between two places of the list. */
  cursorsBetween(first: number, last: number): string[] {
    const tasks = this.tasks;
    const newest = tasks[Math.max(0, first)]?.created_at;
    const oldest = tasks[Math.min(last, tasks.length - 1)]?.created_at;
    if (newest === undefined || oldest === undefined) return [];
    return this.pages.flatMap(({ cursor, oldest: end }, index) => {
      const start = this.pages[index - 1]?.oldest;
      const overlaps = end <= newest && (start === undefined || start >= oldest);
      return cursor !== undefined && overlaps ? [cursor] : [];
    });
  }

  private put(task: TaskView): void {
    const known = this.byId.get(task.id);
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(task)) return;
    this.byId.set(task.id, task);
    this.order = null;
  }

  private remove(id: string): void {
    if (this.byId.delete(id)) this.order = null;
  }
}

function newestFirst(one: TaskView, other: TaskView): number {
  if (one.created_at !== other.created_at) return one.created_at < other.created_at ? 1 : -1;
  return one.id < other.id ? 1 : one.id > other.id ? -1 : 0;
}
