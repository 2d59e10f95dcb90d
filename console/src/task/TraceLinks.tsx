import { useQuery } from "@tanstack/react-query";
import { useClient } from "../api/context";
import type { TimelineEntry } from "../api/types";
import { traceLink } from "../shared/address";

/** Links to the traces of a task in X-Ray: none on this machine, where nothing goes to X-Ray. */
export function TraceLinks({ timeline }: { timeline: readonly TimelineEntry[] }) {
  const client = useClient();
  const info = useQuery({ queryKey: ["info"], queryFn: () => client.info(), staleTime: Infinity });
  if (info.data === undefined || info.data.is_local) return null;
  const { region } = info.data;
  const links = [...new Set(timeline.flatMap((entry) => entry.trace_id ?? []))].flatMap((id) => traceLink(id, region) ?? []);
  return links.map((link, index) => (
    <p key={link}>
      <a href={link} target="_blank" rel="noreferrer">
        The trace in X-Ray{links.length > 1 && ` (${index + 1} of ${links.length})`}
      </a>
    </p>
  ));
}
