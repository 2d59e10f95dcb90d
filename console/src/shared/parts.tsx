/** Small parts of all pages. */

import { useEffect, useState } from "react";
import type { ViewStatus } from "../api/types";
import { problemOf } from "../actions/bulk";
import { fullTime, shortTime } from "./format";

const SIGNS: Record<ViewStatus, string> = {
  pending: "○",
  running: "●",
  paused: "❚❚",
  succeeded: "✓",
  failed: "✕",
  canceled: "⊘",
  unknown: "?",
};

export function Status({ status }: { status: ViewStatus }) {
  return (
    <span className={`status ${status}`}>
      <span aria-hidden="true">{SIGNS[status]}</span> {status}
    </span>
  );
}

/** A time of the reader's zone; the whole time is in its title. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={fullTime(at)}>
      {shortTime(at)}
    </time>
  );
}

const COPIED_MILLISECONDS = 1500;

/** A button that copies a text, such as an id. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <button
      type="button"
      className="copy"
      aria-label={isCopied ? "Copied" : `Copy ${label}`}
      title={isCopied ? "Copied" : `Copy ${label}`}
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
    >
      <svg viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.5" aria-hidden="true">
        <path d={isCopied ? "M3 8.5 6.5 12 13 4.5" : "M6 5.5h7.5v8H6zM10 3H2.5v8H4"} />
      </svg>
    </button>
  );
}

/** What went wrong, and what to do. */
export function Problem({ error }: { error: unknown }) {
  return (
    <p className="problem" role="alert">
      {problemOf(error)}
    </p>
  );
}
