import { useQuery } from "@tanstack/react-query";
import type { ElkNode } from "elkjs/lib/elk-api";
import { type LayoutEdge, type LayoutNode, layoutOf, pathOf } from "../shared/layout";
import { useIsNarrow } from "../shared/useIsNarrow";
import { describeRoute, type NodeState, type RouteEdge, type RouteGraph, type RouteNode } from "./route";

const SIGNS: Record<NodeState, string> = { passed: "✓", here: "●", failed: "✕", next: "" };
const CHARACTER_PIXELS = 7.5;
const NODE_HEIGHT = 40;
const MARGIN = 4;
/** Hops before and after the present one that are drawn; a loop may have thousands. */
const AROUND = 40;

export default function RouteDrawing({ graph }: { graph: RouteGraph }) {
  const shown = around(graph);
  const direction = useIsNarrow() ? "DOWN" : "RIGHT";
  const layout = useQuery({
    queryKey: ["layout", direction, shown.nodes.map(({ position, actor }) => [position, actor])],
    queryFn: () => layoutOf(shown.nodes.map(sized), shown.edges.map(joined), direction),
    staleTime: Infinity,
    placeholderData: (before) => before,
  });
  if (layout.data === undefined) return <p className="lines">{describeRoute(shown)}</p>;
  const { children = [], edges = [], width = 0, height = 0 } = layout.data;
  const byPosition = new Map(shown.nodes.map((node) => [String(node.position), node]));
  const states = new Map(shown.edges.map((edge) => [`${edge.from}-${edge.to}`, edge.state]));
  return (
    <div className="graph" tabIndex={0} role="group" aria-label="Route, drawn">
      <svg width={width + 2 * MARGIN} height={height + 2 * MARGIN} role="img" aria-label={describeRoute(shown)}>
        <g transform={`translate(${MARGIN} ${MARGIN})`}>
          {edges.map((edge) => (
            <path key={edge.id} d={pathOf(edge)} className={`edge ${states.get(edge.id) ?? "next"}`} />
          ))}
          {children.map((child) => {
            const node = byPosition.get(child.id);
            return node === undefined ? null : <Node key={child.id} node={node} place={child} />;
          })}
        </g>
      </svg>
    </div>
  );
}

function Node({ node, place }: { node: RouteNode; place: ElkNode }) {
  const { x = 0, y = 0, width = 0, height = 0 } = place;
  return (
    <g transform={`translate(${x} ${y})`} className={`node ${node.state}`}>
      <rect width={width} height={height} rx={5} />
      <text x={width / 2} y={node.attempts > 1 ? 17 : 25} textAnchor="middle">
        {labelOf(node)}
      </text>
      {node.attempts > 1 && (
        <text x={width / 2} y={33} textAnchor="middle" className="attempts">
          {node.attempts} attempts
        </text>
      )}
    </g>
  );
}

function labelOf({ actor, state }: RouteNode): string {
  return `${SIGNS[state]} ${actor}`.trim();
}

function around({ nodes, edges }: RouteGraph): RouteGraph {
  const here = Math.max(0, nodes.findIndex(({ state }) => state !== "passed"));
  const isShown = (position: number): boolean => Math.abs(position - here) <= AROUND;
  return {
    nodes: nodes.filter(({ position }) => isShown(position)),
    edges: edges.filter(({ from, to }) => isShown(from) && isShown(to)),
  };
}

function sized(node: RouteNode): LayoutNode {
  const width = Math.max(70, labelOf(node).length * CHARACTER_PIXELS + 20);
  return { id: String(node.position), width, height: NODE_HEIGHT };
}

function joined({ from, to }: RouteEdge): LayoutEdge {
  return { id: `${from}-${to}`, from: String(from), to: String(to) };
}
