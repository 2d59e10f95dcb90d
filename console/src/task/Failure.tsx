import type { TaskView } from "../api/types";
import { Time } from "../shared/parts";

const WAITS: ReadonlyMap<string, string> = new Map([
  ["CircuitOpen", "It waits"],
  ["Outage", "It may wait"],
]);

/** The error of a task with its traceback, the last failed attempt of a running one, a problem of its queue, and how earlier generations ended. */
export function Failure({ task }: { task: TaskView }) {
  const { error, problem, retry, earlier = [] } = task;
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
      {retry !== undefined && (
        <section aria-labelledby="retry-title">
          <h2 id="retry-title">
            Attempt {retry.attempt} of {retry.max_attempts} failed{task.actor && ` at ${task.actor}`}
          </h2>
          <p className="problem">
            <strong>{retry.error.type}</strong>: <span className="lines">{retry.error.message}</span>
          </p>
          <p className="quiet">
            It failed at <Time at={retry.failed_at} />.{" "}
            {retry.next_at === undefined ? (
              "The next attempt is at work."
            ) : (
              <>
                The next attempt is due at <Time at={retry.next_at} />.
              </>
            )}
          </p>
        </section>
      )}
      {problem !== undefined && (
        <p className="problem">
          {WAITS.get(problem.type) ?? "A queue refuses its messages"}: <strong>{problem.type}</strong>:{" "}
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
                {each.resolution !== undefined && `, ${each.resolution.how}`}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
