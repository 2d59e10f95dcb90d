import { useQuery } from "@tanstack/react-query";
import type { ElkNode } from "elkjs/lib/elk-api";
import type { ActorNumbers } from "../api/types";
import { layoutOf, pathOf } from "../shared/layout";
import { useIsNarrow } from "../shared/useIsNarrow";
import { addressOf } from "../view";
import type { MeshGraph, MeshNode } from "./graph";
import { countsOf, ratesOf, runsOf, troublesOf } from "./troubles";

const CHARACTER_PIXELS = 7.5;
const LEAST_WIDTH = 225;
const LINE_PIXELS = 16;
const HEIGHT = 5 * LINE_PIXELS + 4;
const SMALL_HEIGHT = 28;
const MARGIN = 6;

export default function MeshDrawing({ graph }: { graph: MeshGraph }) {
  const direction = useIsNarrow() ? "DOWN" : "RIGHT";
  const nodes = graph.nodes.map(sized);
  const layout = useQuery({
    queryKey: ["layout", direction, nodes, graph.lines.map(({ id }) => id)],
    queryFn: () => layoutOf(nodes, graph.lines, direction, 40),
    staleTime: Infinity,
    placeholderData: (before) => before,
  });
  if (layout.data === undefined) return <p role="status">Drawing…</p>;
  const { children = [], edges = [], width = 0, height = 0 } = layout.data;
  const places = new Map(children.map((child) => [child.id, child]));
  const lines = new Map(graph.lines.map((line) => [line.id, line]));
  return (
    <div className="graph" tabIndex={0} role="group" aria-label="Graph of the mesh">
      <svg width={width + 2 * MARGIN} height={height + 2 * MARGIN}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX={7} refY={4} markerWidth={7} markerHeight={7} orient="auto">
            <path d="M0 0 8 4 0 8z" className="arrow" />
          </marker>
        </defs>
        <g transform={`translate(${MARGIN} ${MARGIN})`}>
          {edges.map((edge) => (
            <path key={edge.id} d={pathOf(edge)} className="edge" markerEnd="url(#arrow)">
              <title>{titleOf(lines.get(edge.id)?.tools ?? [])}</title>
            </path>
          ))}
          {graph.nodes.map((node) => {
            const place = places.get(node.id);
            return place === undefined ? null : <Node key={node.id} node={node} place={place} />;
          })}
        </g>
      </svg>
    </div>
  );
}

function titleOf(tools: readonly string[]): string {
  return tools.length === 0 ? "by the mesh file" : `on the route of ${tools.join(", ")}`;
}

/** The size of a node depends on its name alone, so that new numbers move nothing. */
function sized({ id, name, actor }: MeshNode): { id: string; width: number; height: number } {
  const width = name.length * CHARACTER_PIXELS + 24;
  return actor === undefined
    ? { id, width, height: SMALL_HEIGHT }
    : { id, width: Math.max(LEAST_WIDTH, width), height: HEIGHT };
}

function Node({ node, place }: { node: MeshNode; place: ElkNode }) {
  const { x = 0, y = 0, width = 0, height = 0 } = place;
  const { name, actor, isTool } = node;
  const at = `translate(${x} ${y})`;
  if (actor !== undefined) return <ActorNode actor={actor} at={at} width={width} height={height} />;
  return (
    <g transform={at} className={isTool ? "node tool" : "node"}>
      <rect width={width} height={height} rx={isTool ? height / 2 : 5} />
      <text x={width / 2} y={height / 2 + 5} textAnchor="middle">
        {name}
      </text>
    </g>
  );
}

function ActorNode({ actor, at, width, height }: { actor: ActorNumbers; at: string; width: number; height: number }) {
  const [trouble, ...others] = troublesOf(actor);
  const state = trouble === undefined ? "" : trouble.isBad ? " bad" : " warn";
  const lines = [countsOf(actor), ratesOf(actor), runsOf(actor)].filter((line) => line.length > 0);
  return (
    <a href={addressOf({ page: "actor", actor: actor.name, tab: "overview" })}>
      <g transform={at} className={`node actor${state}`}>
        <rect width={width} height={height} rx={5} />
        <text x={10} y={LINE_PIXELS + 2} className="name">
          {actor.name}
        </text>{" "}
        {lines.map((line, index) => (
          <text key={line[0]} x={10} y={LINE_PIXELS * (index + 2) + 2} className="numbers">
            {`${line.join(" · ")} `}
          </text>
        ))}
        {trouble !== undefined && (
          <text x={10} y={height - 8} className="trouble">
            <tspan aria-hidden="true">{trouble.isBad ? "✕" : "!"}</tspan> {trouble.text}
            {others.length > 0 && ` +${others.length}`}
          </text>
        )}
      </g>
    </a>
  );
}
