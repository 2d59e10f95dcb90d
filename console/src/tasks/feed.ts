/** Reads one list of tasks and keeps it up to date. */

import type { Client } from "../api/client";
import { hasEnded, type TaskView } from "../api/types";
import type { TaskFilter } from "../view";
import { TaskCollection } from "./collection";
import { earliest, isSelected, listQuery } from "./matching";

const PAGE_SIZE = "100";
const LARGEST = 10_000;
/** Pages that one request of the reader reads at most: few tasks may match, and each page costs. */
const PAGES_AT_ONCE = 20;
const ENOUGH = 50;
/** Ended tasks change rarely (a redrive), so their pages are read again every so many rounds. */
const ENDED_EVERY = 5;

export interface FeedState {
  tasks: readonly TaskView[];
  /** Whether older tasks can be read. */
  hasMore: boolean;
  /** Whether there are more tasks than the page takes. */
  isFull: boolean;
}

export class TaskFeed {
  private collection = new TaskCollection();
  private readonly query: Record<string, string>;
  private readonly accepts: (task: TaskView) => boolean;
  private rounds = 0;
  private state: FeedState = { tasks: [], hasMore: true, isFull: false };
  private loading: Promise<void> = Promise.resolve();

  constructor(
    private readonly client: Pick<Client, "tasks">,
    filter: TaskFilter,
    now: number,
  ) {
    const since = filter.age ? earliest(filter.age, now) : undefined;
    this.query = { ...listQuery(filter, now), limit: PAGE_SIZE };
    this.accepts = (task) => isSelected(task, filter, since);
  }

  /** Read what is new and what has changed among the newest tasks and those on the screen. */
  async refresh(first: number, last: number): Promise<FeedState> {
    await this.loading;
    if (this.collection.tasks.length === 0 && this.collection.next === undefined) {
      this.collection = new TaskCollection();
      await this.more();
      return this.current();
    }
    await this.refreshNewest();
    this.rounds += 1;
    const seen = this.collection.tasks.slice(Math.max(0, first), last + 1);
    if (this.rounds % ENDED_EVERY === 0 || seen.some((task) => !hasEnded(task.status))) {
      for (const cursor of this.collection.cursorsBetween(first, last)) {
        this.collection.refresh(await this.client.tasks({ ...this.query, cursor }), cursor, this.accepts);
      }
    }
    return this.current();
  }

  /** Read older tasks: until there are enough new rows, or no more pages. */
  async more(enough = ENOUGH, pages = PAGES_AT_ONCE): Promise<FeedState> {
    const reading = this.loading.then(() => this.readOlder(enough, pages));
    this.loading = reading.catch(() => undefined);
    await reading;
    return this.current();
  }

  /** Read all tasks of the list, 10,000 at most. */
  all(): Promise<FeedState> {
    return this.more(LARGEST, LARGEST / Number(PAGE_SIZE));
  }

  private async readOlder(enough: number, pages: number): Promise<void> {
    const before = this.collection.tasks.length;
    for (let count = 0; count < pages && this.collection.hasMore; count += 1) {
      const length = this.collection.tasks.length;
      if (length - before >= enough || length >= LARGEST) return;
      this.collection.append(await this.client.tasks({ ...this.query, cursor: this.collection.next }), this.accepts);
    }
  }

  private async refreshNewest(): Promise<void> {
    let page = await this.client.tasks(this.query);
    if (this.collection.refresh(page, undefined, this.accepts)) return;
    // More tasks are new than a page has: read on until a known one, or begin again.
    const fresh = new TaskCollection();
    fresh.append(page, this.accepts);
    const known = new Set(this.collection.tasks.map((task) => task.id));
    for (let count = 1; count < PAGES_AT_ONCE && page.next_cursor !== undefined; count += 1) {
      page = await this.client.tasks({ ...this.query, cursor: page.next_cursor });
      fresh.append(page, this.accepts);
      if (page.items.some((task) => known.has(task.id))) break;
    }
    this.collection = fresh;
  }

  private current(): FeedState {
    const { tasks, hasMore: hasOlder } = this.collection;
    const isFull = hasOlder && tasks.length >= LARGEST;
    const hasMore = hasOlder && !isFull;
    const isSame = tasks === this.state.tasks || tasks.length + this.state.tasks.length === 0;
    if (!isSame || hasMore !== this.state.hasMore || isFull !== this.state.isFull) this.state = { tasks, hasMore, isFull };
    return this.state;
  }
}
