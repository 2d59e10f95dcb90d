/** The views of all job runs and of one, and their addresses. */

import { decoded, withQuery } from "../shared/address";

export const RUN_TABS = ["envelopes", "logs"] as const;
export type RunTab = (typeof RUN_TABS)[number];
/** Whose lines are shown; those of all without one. */
export const SOURCES = ["driver", "executor"] as const;
export type RunSource = (typeof SOURCES)[number];

export type RunsView =
  | { page: "runs"; actor?: string }
  | { page: "run"; id: string; tab: RunTab; source?: RunSource };

/** Read an address below `#/runs`; undefined for any other. */
export function parseRunsView(path: string, given: URLSearchParams): RunsView | undefined {
  if (path === "/runs") {
    const actor = given.get("actor");
    return { page: "runs", ...(actor ? { actor } : {}) };
  }
  const id = /^\/runs\/([^/]+)$/.exec(path)?.[1];
  if (id === undefined) return undefined;
  const tab = RUN_TABS.find((each) => each === given.get("show")) ?? "envelopes";
  const source = SOURCES.find((each) => each === given.get("source"));
  return { page: "run", id: decoded(id), tab, ...(tab === "logs" && source ? { source } : {}) };
}

/** Return the address of a view, with `#`. */
export function runsAddress(view: RunsView): string {
  const query = new URLSearchParams();
  if (view.page === "runs") {
    if (view.actor) query.set("actor", view.actor);
    return withQuery("#/runs", query);
  }
  if (view.tab !== "envelopes") query.set("show", view.tab);
  if (view.source) query.set("source", view.source);
  return withQuery(`#/runs/${encodeURIComponent(view.id)}`, query);
}
