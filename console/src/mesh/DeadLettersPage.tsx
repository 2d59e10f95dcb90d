/** The dead letters of all queues of the mesh: actors, x-sink, x-sump, and the queues of system functions. */

import { addressOf, type View } from "../view";
import { DeadLetters } from "./DeadLetters";
import "../shared/tables.css";
import "./mesh.css";

export default function DeadLettersPage({ view: { actor } }: { view: Extract<View, { page: "dead-letters" }> }) {
  return (
    <>
      <h1>Dead letters{actor !== undefined && ` of ${actor}`}</h1>
      {actor !== undefined && (
        <p>
          <a href={addressOf({ page: "dead-letters" })}>All queues</a>
        </p>
      )}
      <DeadLetters actor={actor} />
      <p className="quiet">
        Dead letters of reports are no envelopes: <code>asya dlq reports replay</code> sends them again.
      </p>
    </>
  );
}
