/** The frame of all pages: the name of the mesh, and the page that the address names. */

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { useClient } from "./api/context";
import { useView } from "./shared/useView";
import { TasksPage } from "./tasks/TasksPage";
import { addressOf } from "./view";

const TaskPage = lazy(() => import("./task/TaskPage"));

export function App() {
  const view = useView();
  const client = useClient();
  const info = useQuery({ queryKey: ["info"], queryFn: () => client.info(), staleTime: Infinity });
  const title = view.page === "task" ? view.id : "Tasks";
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
          <a href={addressOf({ page: "tasks", filter: {} })} aria-current={view.page === "tasks" ? "page" : undefined}>
            Tasks
          </a>
        </nav>
        {info.data && (
          <p className="mesh">
            <strong>{info.data.namespace}</strong>{" "}
            <span className="quiet">{info.data.is_local ? "this machine" : info.data.region}</span>
          </p>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {view.page === "task" ? (
          <Suspense fallback={<p role="status">Loading…</p>}>
            <TaskPage key={view.id} view={view} />
          </Suspense>
        ) : (
          <TasksPage filter={view.filter} />
        )}
      </main>
    </>
  );
}

/** The fragment of the address is the page's own, so the link moves the focus itself. */
function focusMain(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
