/** What the page shows, and its address: the part after `#`, so that the server never sees it. */

import { STATUSES, type TaskStatus } from "./api/types";
import { meshAddress, type MeshView, parseMeshView } from "./mesh/view";
import { parseRunsView, runsAddress, type RunsView } from "./runs/view";
import { decoded, withQuery } from "./shared/address";

export interface TaskFilter {
  status?: TaskStatus;
  tool?: string;
  actor?: string;
  owner?: string;
  /** The text of the error, or of the reason. */
  error?: string;
  /** Tasks created within this time: `90s`, `30m`, `2h`, `7d`. */
  age?: string;
  /** Only tasks that no other task has fanned out into. */
  roots?: boolean;
  /** Only running tasks that run again after an error. */
  retrying?: boolean;
  /** Of failed tasks also those that are settled. */
  resolved?: boolean;
}

export type View =
  | { page: "tasks"; filter: TaskFilter }
  | { page: "task"; id: string; tab: TaskTab; hop?: number }
  | MeshView
  | RunsView;

export const TABS = ["overview", "hops", "children", "partials", "payloads", "logs"] as const;
export type TaskTab = (typeof TABS)[number];

const TEXTS = ["tool", "actor", "owner", "error"] as const;
const AGE = /^[1-9]\d{0,8}[smhd]$/;
const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400 };

/** Read an address. What it does not name is left out, and an address of nothing shows the tasks. */
export function parseView(hash: string): View {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const given = new URLSearchParams(query);
  const other = parseMeshView(path, given) ?? parseRunsView(path, given);
  if (other !== undefined) return other;
  const id = /^\/tasks\/([^/]+)$/.exec(path)?.[1];
  if (id !== undefined) {
    const tab = TABS.find((each) => each === given.get("show")) ?? "overview";
    const hop = /^\d{1,6}$/.test(given.get("hop") ?? "") ? Number(given.get("hop")) : undefined;
    return { page: "task", id: decoded(id), tab, ...(hop === undefined ? {} : { hop }) };
  }
  const filter: TaskFilter = {};
  const status = STATUSES.find((each) => each === given.get("status"));
  if (status !== undefined) filter.status = status;
  for (const name of TEXTS) {
    const text = given.get(name);
    if (text) filter[name] = text;
  }
  const age = given.get("age");
  if (age !== null && AGE.test(age)) filter.age = age;
  if (given.get("roots") === "true") filter.roots = true;
  if (given.get("retrying") === "true") filter.retrying = true;
  if (given.get("resolved") === "true") filter.resolved = true;
  return { page: "tasks", filter };
}

/** Return the address of a view, with `#`. */
export function addressOf(view: View): string {
  if (view.page === "task") {
    const query = new URLSearchParams();
    if (view.tab !== "overview") query.set("show", view.tab);
    if (view.hop !== undefined) query.set("hop", String(view.hop));
    return withQuery(`#/tasks/${encodeURIComponent(view.id)}`, query);
  }
  if (view.page === "mesh" || view.page === "actor" || view.page === "dead-letters") return meshAddress(view);
  if (view.page === "runs" || view.page === "run") return runsAddress(view);
  return withQuery("#/tasks", new URLSearchParams(filterEntries(view.filter)));
}

/** Return the members of a filter in a fixed order, as the address has them. */
export function filterEntries(filter: TaskFilter): [string, string][] {
  const entries: [string, string][] = [];
  if (filter.status) entries.push(["status", filter.status]);
  for (const name of TEXTS) if (filter[name]) entries.push([name, filter[name]]);
  if (filter.age) entries.push(["age", filter.age]);
  if (filter.roots) entries.push(["roots", "true"]);
  if (filter.retrying) entries.push(["retrying", "true"]);
  if (filter.resolved) entries.push(["resolved", "true"]);
  return entries;
}

/** Return the seconds of an age such as `30m`. */
export function ageSeconds(age: string): number {
  return Number(age.slice(0, -1)) * (UNIT_SECONDS[age.slice(-1)] ?? 0);
}
