/** Dead letters with their bodies, of one queue or of all. A body is untrusted text. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ActionDialog } from "../actions/ActionDialog";
import { useClient } from "../api/context";
import type { LetterView, LetterPage } from "../api/types";
import { bytes, counted } from "../shared/format";
import { indented } from "../shared/json";
import { Refused } from "../shared/LogLines";
import { Copy, Time } from "../shared/parts";
import { addressOf } from "../view";
import { letterTask, receivesOf, whyOf } from "./letters";

const LIMIT = "200";

/** A read hides the messages from others for a moment, so the page reads them when it is asked to. */
export function DeadLetters({ actor }: { actor: string | undefined }) {
  const client = useClient();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isAsking, setAsking] = useState(false);
  const letters = useQuery({
    queryKey: ["dead-letters", actor],
    queryFn: () => client.deadLetters({ actor, limit: LIMIT }),
    retry: false,
    refetchOnWindowFocus: false,
  });
  if (letters.error !== null) return <Refused error={letters.error} />;
  if (letters.data === undefined) return <p role="status">Loading…</p>;
  const { items } = letters.data;
  const chosen = items.filter((each) => selected.has(each.message_id));
  const select = (ids: readonly string[], isSelected: boolean): void => {
    const changed = new Set(selected);
    for (const id of ids) {
      if (isSelected) changed.add(id);
      else changed.delete(id);
    }
    setSelected(changed);
  };
  return (
    <>
      <div className="listing">
        <p className="count" role="status">
          {countOf(letters.data)}
        </p>
        <button type="button" disabled={letters.isFetching} onClick={() => void letters.refetch()}>
          Read again
        </button>
        {items.length > 0 && (
          <label className="check">
            <input
              type="checkbox"
              checked={chosen.length === items.length}
              onChange={({ target }) => select(items.map((each) => each.message_id), target.checked)}
            />
            Select all
          </label>
        )}
        <button type="button" disabled={chosen.length === 0} onClick={() => setAsking(true)}>
          Redrive…
        </button>
      </div>
      {actor === undefined && <Queues page={letters.data} />}
      <ul className="letters" aria-label="Dead letters">
        {items.map((letter) => (
          <Letter
            key={letter.message_id}
            letter={letter}
            isNamed={actor === undefined}
            isSelected={selected.has(letter.message_id)}
            onSelect={(isSelected) => select([letter.message_id], isSelected)}
          />
        ))}
      </ul>
      {isAsking && (
        <ActionDialog
          action="redrive"
          tasks={chosen.map(letterTask)}
          onClose={() => {
            setAsking(false);
            setSelected(new Set());
          }}
        />
      )}
    </>
  );
}

function countOf({ items, queues, has_more: hasMore }: LetterPage): string {
  const hidden = queues.reduce((total, queue) => total + queue.hidden, 0);
  const parts = [counted(items.length, "dead letter")];
  if (hasMore) parts.push("and more in the queue");
  if (hidden > 0) parts.push(`${hidden} are being read or redriven by somebody`);
  return parts.join(", ");
}

/** The queues that have dead letters: a scan of all of them may end before it has reached the last. */
function Queues({ page: { queues } }: { page: LetterPage }) {
  if (queues.length === 0) return null;
  return (
    <ul className="queues" aria-label="Queues">
      {queues.map(({ actor, visible, hidden }) => (
        <li key={actor}>
          <a href={addressOf({ page: "dead-letters", actor })}>{actor}</a>: {(visible + hidden).toLocaleString("en")}
        </li>
      ))}
    </ul>
  );
}

interface LetterProps {
  letter: LetterView;
  /** Whether the letter says whose queue it is in. */
  isNamed: boolean;
  isSelected: boolean;
  onSelect: (isSelected: boolean) => void;
}

function Letter({ letter, isNamed, isSelected, onSelect }: LetterProps) {
  const isTask = letter.generation !== undefined || letter.task !== undefined;
  const facts = [
    isNamed && `at ${letter.actor}`,
    letter.hop !== undefined && `hop ${letter.hop}`,
    letter.generation !== undefined && letter.generation > 0 && `generation ${letter.generation}`,
    letter.task !== undefined && `its task is ${letter.task}`,
    receivesOf(letter),
    bytes(letter.size),
  ];
  return (
    <li>
      <div className="head">
        <input
          type="checkbox"
          aria-label={`Select ${letter.id}`}
          checked={isSelected}
          onChange={({ target }) => onSelect(target.checked)}
        />
        <div>
          <Time at={letter.sent_at} />{" "}
          {isTask ? <a href={addressOf({ page: "task", id: letter.id, tab: "overview" })}>{letter.id}</a> : letter.id}
          <Copy text={letter.id} label={`the id ${letter.id}`} /> <code>{whyOf(letter)}</code>
          <p className="quiet">{facts.filter(Boolean).join(", ")}</p>
        </div>
      </div>
      <details>
        <summary>Body{letter.truncated && `, its first ${bytes(new Blob([letter.body]).size)}`}</summary>
        <pre tabIndex={0}>{indented(letter.body)}</pre>
        <button type="button" onClick={() => void navigator.clipboard.writeText(letter.body)}>
          Copy the body
        </button>
      </details>
    </li>
  );
}
