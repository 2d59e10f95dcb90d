/** The layout of graphs. ELK computes it in a worker; this module is loaded with the first graph. */

import ELK, { type ElkNode } from "elkjs/lib/elk-api";
import ElkWorker from "elkjs/lib/elk-worker.min.js?worker";

const elk = new ELK({ workerFactory: () => new ElkWorker() });

export type Direction = "DOWN" | "RIGHT";

export interface LayoutNode {
  id: string;
  width: number;
  height: number;
}

export interface LayoutEdge {
  id: string;
  from: string;
  to: string;
}

/** Return the places of the nodes and the lines of the edges: layers in one direction. */
export function layoutOf(
  nodes: readonly LayoutNode[],
  edges: readonly LayoutEdge[],
  direction: Direction,
  spacing = 28,
): Promise<ElkNode> {
  return elk.layout({
    id: "graph",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": direction,
      "elk.layered.spacing.nodeNodeBetweenLayers": String(spacing),
      "elk.padding": "[top=0,left=0,bottom=0,right=0]",
    },
    children: nodes.map(({ id, width, height }) => ({ id, width, height })),
    edges: edges.map(({ id, from, to }) => ({ id, sources: [from], targets: [to] })),
  });
}

/** Return the line of an edge as the path of an SVG. */
export function pathOf(edge: NonNullable<ElkNode["edges"]>[number]): string {
  return (edge.sections ?? [])
    .map(({ startPoint, bendPoints = [], endPoint }) =>
      [startPoint, ...bendPoints, endPoint].map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${x} ${y}`).join(" "),
    )
    .join(" ");
}
