/** The mesh as a graph: tools lead to the first actor of their route, and actors to those that they send to. */

import type { ActorNumbers, MeshNumbers } from "../api/types";

export interface MeshNode {
  id: string;
  name: string;
  /** The numbers of an actor; undefined for a tool. */
  actor?: ActorNumbers;
  isTool: boolean;
}

export interface MeshLine {
  id: string;
  from: string;
  to: string;
  /** The tools whose routes have this step; empty if the mesh file alone says so. */
  tools: string[];
}

export interface MeshGraph {
  nodes: MeshNode[];
  lines: MeshLine[];
}

const TOOL = "tool ";
const SINK = "x-sink";
const SMALL = 30;

/**
 * Return the graph of a mesh.
 *
 * @param tool - Only the route of this tool.
 */
export function meshGraph(mesh: MeshNumbers, tool?: string): MeshGraph {
  const actors = new Map(mesh.actors.map((actor) => [actor.name, actor]));
  const lines = new Map<string, MeshLine>();
  const add = (from: string, to: string, name?: string): void => {
    const id = JSON.stringify([from, to]);
    const line = lines.get(id) ?? { id, from, to, tools: [] };
    if (name !== undefined && !line.tools.includes(name)) line.tools.push(name);
    lines.set(id, line);
  };
  const tools = mesh.tools.filter(({ name }) => tool === undefined || name === tool);
  for (const { name, route } of tools) {
    const [first] = route;
    if (first !== undefined) add(TOOL + name, first, name);
  }
  for (const { from, to, tool: name } of mesh.edges) {
    // Each route ends in x-sink. In a large mesh those lines would hide the others.
    if (to === SINK && tool === undefined && actors.size > SMALL) continue;
    if (tool === undefined || name === tool) add(from, to, name);
  }
  const shown = [...lines.values()];
  const ends = new Set(shown.flatMap(({ from, to }) => [from, to]));
  const names = tool === undefined ? new Set([...actors.keys(), ...ends]) : ends;
  const nodes = [...tools.map(({ name }) => TOOL + name), ...names].map((id) => nodeOf(id, actors.get(id)));
  return { nodes: [...new Map(nodes.map((node) => [node.id, node])).values()], lines: shown };
}

function nodeOf(id: string, actor: ActorNumbers | undefined): MeshNode {
  const isTool = id.startsWith(TOOL);
  return { id, name: isTool ? id.slice(TOOL.length) : id, isTool, ...(actor === undefined ? {} : { actor }) };
}
