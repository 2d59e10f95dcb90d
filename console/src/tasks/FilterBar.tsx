/** The filters of the list. What is typed counts after a moment; the address keeps it. */

import { useEffect, useId, useRef, useState } from "react";
import { STATUSES } from "../api/types";
import { useIsNarrow } from "../shared/useIsNarrow";
import { show } from "../shared/useView";
import { filterEntries, type TaskFilter } from "../view";

const TYPING_MILLISECONDS = 300;
const AGES = [
  ["15m", "15 minutes"],
  ["1h", "hour"],
  ["12h", "12 hours"],
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["30d", "30 days"],
] as const;

export function FilterBar({ filter }: { filter: TaskFilter }) {
  const change = (name: keyof TaskFilter, value: string | boolean): void => {
    const next: Record<string, unknown> = { ...filter, [name]: value };
    if (!value) delete next[name];
    show({ page: "tasks", filter: next as TaskFilter }, { inPlace: true });
  };
  const isNarrow = useIsNarrow();
  const form = (
      <form className="filters" onSubmit={(event) => event.preventDefault()}>
        <Choice
          label="Status"
          value={filter.status ?? ""}
          options={STATUSES.map((each) => [each, each] as const)}
          onChange={(value) => change("status", value)}
        />
        <Choice label="Created in the last" value={filter.age ?? ""} options={AGES} onChange={(value) => change("age", value)} />
        <TextFilter label="Tool" value={filter.tool ?? ""} onChange={(value) => change("tool", value)} />
        <TextFilter label="Actor" value={filter.actor ?? ""} onChange={(value) => change("actor", value)} />
        <TextFilter label="Owner" value={filter.owner ?? ""} onChange={(value) => change("owner", value)} />
        <TextFilter label="Text of the error" value={filter.error ?? ""} onChange={(value) => change("error", value)} />
        <label className="check">
          <input
            type="checkbox"
            checked={filter.roots ?? false}
            onChange={(event) => change("roots", event.target.checked)}
          />
          no slices
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={filter.retrying ?? false}
            onChange={(event) => change("retrying", event.target.checked)}
          />
          retried
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={filter.resolved ?? false}
            onChange={(event) => change("resolved", event.target.checked)}
          />
          settled failures
        </label>
        <button type="button" onClick={() => show({ page: "tasks", filter: {} })}>
          Clear
        </button>
      </form>
  );
  const count = filterEntries(filter).length;
  return (
    <search aria-label="Filters of the tasks">
      {isNarrow ? (
        <details className="folded">
          <summary>Filters{count > 0 && ` (${count})`}</summary>
          {form}
        </details>
      ) : (
        form
      )}
    </search>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  const id = useId();
  const isListed = value === "" || options.some(([each]) => each === value);
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">any</option>
        {!isListed && <option value={value}>{value}</option>}
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

function TextFilter({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const id = useId();
  const [typed, setTyped] = useState(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => latest.current(typed), TYPING_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [typed, value]);
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="text"
        value={typed}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setTyped(event.target.value)}
      />
    </div>
  );
}
