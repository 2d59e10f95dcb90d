import type { TaskView } from "../api/types";

const CIRCUIT_OPEN = "CircuitOpen";

/** The error of a task with its traceback, a problem of its queue, and how earlier generations ended. */
export function Failure({ task }: { task: TaskView }) {
  const { error, problem, earlier = [] } = task;
  return (
    <>
      {error !== undefined && (
        <section aria-labelledby="error-title">
          <h2 id="error-title">Error{task.actor && ` at ${task.actor}`}</h2>
          <p className="problem">
            <strong>{error.type}</strong>: <span className="lines">{error.message}</span>
          </p>
          {error.traceback && <pre tabIndex={0}>{error.traceback}</pre>}
          {task.provisional && <p className="quiet">The end is provisional: the envelope may still end otherwise.</p>}
        </section>
      )}
      {problem !== undefined && (
        <p className="problem">
          {problem.type === CIRCUIT_OPEN ? "It waits" : "A queue refuses its messages"}: <strong>{problem.type}</strong>:{" "}
          {problem.message}
        </p>
      )}
      {earlier.length > 0 && (
        <section aria-labelledby="earlier-title">
          <h2 id="earlier-title">Earlier generations</h2>
          <ul>
            {earlier.map((each) => (
              <li key={each.generation}>
                {each.generation}: {each.status}
                {each.reason && ` (${each.reason})`}
                {each.actor && ` at ${each.actor}`}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
