import type { ReactNode } from "react";
import { Copy } from "./parts";

/** Facts by their names. A fact without a value is left out. */
export function Facts({ facts }: { facts: readonly [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) =>
        value === null || value === undefined || value === false || value === "" ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** A text with a button that copies it. */
export function Copied({ text, label }: { text: string; label: string }) {
  return (
    <span className="id">
      <code>{text}</code>
      <Copy text={text} label={label} />
    </span>
  );
}
