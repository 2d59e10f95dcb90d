import type { View } from "../view";

export default function TaskPage({ view }: { view: Extract<View, { page: "task" }> }) {
  return <h1>{view.id}</h1>;
}
