/** The route of a task as a graph: what it has passed, where it is, what is to come. */

import { hasEndedBadly, type TaskView, type TimelineEntry } from "../api/types";

export type NodeState = "passed" | "here" | "failed" | "next";

export interface RouteNode {
  position: number;
  actor: string;
  state: NodeState;
  /** How often the hop was tried in this generation; 0 before the first. */
  attempts: number;
}

export interface RouteEdge {
  from: number;
  to: number;
  state: "passed" | "next" | "failed";
}

export interface RouteGraph {
  nodes: RouteNode[];
  edges: RouteEdge[];
}

/** Return the graph of a task's present generation. */
export function routeGraph(task: TaskView, timeline: readonly TimelineEntry[]): RouteGraph {
  const { prev = [], curr = "", next = [] } = task.route ?? {};
  const done = prev.map((actor) => ({ actor, state: "passed" as NodeState }));
  const here = curr === "" ? [] : [{ actor: curr, state: stateHere(task) }];
  const rest = next.map((actor) => ({ actor, state: "next" as NodeState }));
  const attempts = attemptsByPosition(task.generation, timeline);
  const nodes = [...done, ...here, ...rest].map((node, position) => ({
    ...node,
    position,
    attempts: attempts.get(position) ?? 0,
  }));
  const edges = nodes.slice(1).map((node, index): RouteEdge => {
    const state = node.state === "next" ? "next" : node.state === "failed" ? "failed" : "passed";
    return { from: index, to: node.position, state };
  });
  return { nodes, edges };
}

function stateHere(task: TaskView): NodeState {
  if (task.status === "succeeded") return "passed";
  return hasEndedBadly(task.status) ? "failed" : "here";
}

function attemptsByPosition(generation: number, timeline: readonly TimelineEntry[]): Map<number, number> {
  const attempts = new Map<number, number>();
  for (const entry of timeline) {
    if (entry.generation !== generation) continue;
    attempts.set(entry.position, Math.max(attempts.get(entry.position) ?? 0, entry.attempt));
  }
  return attempts;
}

/** Return the graph as a sentence for readers who do not see it. */
export function describeRoute({ nodes }: RouteGraph): string {
  const words: Record<NodeState, string> = { passed: "passed", here: "here", failed: "ended here", next: "to come" };
  return nodes.map(({ actor, state }) => `${actor} (${words[state]})`).join(", ");
}
