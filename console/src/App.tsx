/** The frame of all pages: the name of the mesh, and the page that the address names. */

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { useClient } from "./api/context";
import { useView } from "./shared/useView";
import { TasksPage } from "./tasks/TasksPage";
import { addressOf, type View } from "./view";

const TaskPage = lazy(() => import("./task/TaskPage"));
const MeshPage = lazy(() => import("./mesh/MeshPage"));
const ActorPage = lazy(() => import("./mesh/ActorPage"));
const DeadLettersPage = lazy(() => import("./mesh/DeadLettersPage"));
const RunsPage = lazy(() => import("./runs/RunsPage"));
const RunPage = lazy(() => import("./runs/RunPage"));

const PAGES: readonly [string, View][] = [
  ["Tasks", { page: "tasks", filter: {} }],
  ["Mesh", { page: "mesh" }],
  ["Runs", { page: "runs" }],
  ["Dead letters", { page: "dead-letters" }],
];

export function App() {
  const view = useView();
  const client = useClient();
  const info = useQuery({ queryKey: ["info"], queryFn: () => client.info(), staleTime: Infinity });
  const title = titleOf(view);
  const mesh = info.data?.namespace;
  useEffect(() => {
    document.title = mesh === undefined ? `${title} · Asya` : `${title} · ${mesh} · Asya`;
  }, [title, mesh]);
  return (
    <>
      <a className="skip" href="#main" onClick={focusMain}>
        Skip to the content
      </a>
      <header className="top">
        <nav aria-label="Pages">
          {PAGES.map(([name, shown]) => (
            <a key={name} href={addressOf(shown)} aria-current={view.page === shown.page ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        {info.data && (
          <p className="mesh">
            <strong>{info.data.namespace}</strong>{" "}
            <span className="quiet">{info.data.is_local ? "this machine" : info.data.region}</span>
          </p>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        <Suspense fallback={<p role="status">Loading…</p>}>
          <Page view={view} />
        </Suspense>
      </main>
    </>
  );
}

function Page({ view }: { view: View }) {
  switch (view.page) {
    case "task":
      return <TaskPage key={view.id} view={view} />;
    case "mesh":
      return <MeshPage view={view} />;
    case "actor":
      return <ActorPage key={view.actor} view={view} />;
    case "dead-letters":
      return <DeadLettersPage key={view.actor ?? ""} view={view} />;
    case "runs":
      return <RunsPage key={view.actor ?? ""} view={view} />;
    case "run":
      return <RunPage key={view.id} view={view} />;
    default:
      return <TasksPage filter={view.filter} />;
  }
}

function titleOf(view: View): string {
  switch (view.page) {
    case "task":
    case "run":
      return view.id;
    case "actor":
      return view.actor;
    default:
      return { tasks: "Tasks", mesh: "Mesh", runs: "Runs", "dead-letters": "Dead letters" }[view.page];
  }
}

/** The fragment of the address is the page's own, so the link moves the focus itself. */
function focusMain(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
