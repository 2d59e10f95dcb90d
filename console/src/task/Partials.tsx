import type { PartialEvent } from "../api/types";

/** What handlers have said on the way (FLY): tokens of one hop as one text, other values one below the other. */
export function Partials({ partials }: { partials: readonly PartialEvent[] }) {
  if (partials.length === 0) return <p>Nothing was said. Partials are kept for an hour.</p>;
  const byHop = Object.groupBy(partials, ({ position, attempt }) => `${position}.${attempt}`);
  return Object.entries(byHop).map(([hop, some = []]) => (
    <section key={hop}>
      <h2>
        {some[0]?.actor} <span className="quiet">hop {some[0]?.position}</span>
      </h2>
      <pre tabIndex={0} aria-live="polite">
        {textOf(some)}
      </pre>
    </section>
  ));
}

function textOf(partials: readonly PartialEvent[]): string {
  const areTokens = partials.every(({ data }) => typeof data === "string");
  return partials.map(({ data }) => (areTokens ? String(data) : JSON.stringify(data))).join(areTokens ? "" : "\n");
}
