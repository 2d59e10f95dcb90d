/** The route as a live graph. The layout is computed by ELK, in a worker and a file of its own. */

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useClient } from "../api/context";
import type { TaskView, TimelineEntry } from "../api/types";
import { describeRoute, routeGraph } from "./route";

const RouteDrawing = lazy(() => import("./RouteDrawing"));

export function RouteView({ task, timeline }: { task: TaskView; timeline: readonly TimelineEntry[] }) {
  const client = useClient();
  const slices = useQuery({
    queryKey: ["has-children", task.id, task.updated_at],
    queryFn: () => client.children(task.id, { limit: "1" }),
  });
  if (task.route === undefined) return null;
  const graph = routeGraph(task, timeline);
  return (
    <section aria-labelledby="route-title">
      <h2 id="route-title">Route</h2>
      <Suspense fallback={<p className="lines">{describeRoute(graph)}</p>}>
        <RouteDrawing graph={graph} />
      </Suspense>
      {(slices.data?.items.length ?? 0) > 0 && <p className="quiet">It has fanned out: see its slices.</p>}
    </section>
  );
}
