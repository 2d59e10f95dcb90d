/** The views of the mesh and of one actor, and their addresses. */

import { decoded, withQuery } from "../shared/address";

export const ACTOR_TABS = ["overview", "dead-letters", "logs"] as const;
export type ActorTab = (typeof ACTOR_TABS)[number];

/** How far back the lines of an actor go. */
export const AGES = ["15m", "1h", "6h", "24h", "7d"] as const;
export type LogAge = (typeof AGES)[number];
export const DEFAULT_AGE = "1h";

export type MeshView =
  | { page: "mesh"; tool?: string }
  | { page: "actor"; actor: string; tab: ActorTab; age?: LogAge }
  | { page: "dead-letters"; actor?: string };

/** Read an address of the mesh, an actor or dead letters; undefined for any other. */
export function parseMeshView(path: string, given: URLSearchParams): MeshView | undefined {
  if (path === "/mesh") {
    const tool = given.get("tool");
    return { page: "mesh", ...(tool ? { tool } : {}) };
  }
  if (path === "/dead-letters") {
    const actor = given.get("actor");
    return { page: "dead-letters", ...(actor ? { actor } : {}) };
  }
  const actor = /^\/mesh\/([^/]+)$/.exec(path)?.[1];
  if (actor === undefined) return undefined;
  const tab = ACTOR_TABS.find((each) => each === given.get("show")) ?? "overview";
  const age = AGES.find((each) => each === given.get("age"));
  return { page: "actor", actor: decoded(actor), tab, ...(tab === "logs" && age ? { age } : {}) };
}

/** Return the address of a view, with `#`. */
export function meshAddress(view: MeshView): string {
  const query = new URLSearchParams();
  if (view.page === "mesh") {
    if (view.tool) query.set("tool", view.tool);
    return withQuery("#/mesh", query);
  }
  if (view.page === "dead-letters") {
    if (view.actor) query.set("actor", view.actor);
    return withQuery("#/dead-letters", query);
  }
  if (view.tab !== "overview") query.set("show", view.tab);
  if (view.age) query.set("age", view.age);
  return withQuery(`#/mesh/${encodeURIComponent(view.actor)}`, query);
}
