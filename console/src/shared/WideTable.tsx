import type { ReactNode } from "react";

export interface Column {
  name: string;
  isNumber?: boolean;
}

interface WideTableProps {
  /** What the table shows, for screen readers. */
  label: string;
  columns: readonly Column[];
  className?: string;
  /** The rows. */
  children: ReactNode;
}

/** A table that scrolls sideways on a narrow screen, also by keyboard. */
export function WideTable({ label, columns, className, children }: WideTableProps) {
  return (
    <div className="wide" tabIndex={0} role="region" aria-label={label}>
      <table className={className}>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th scope="col" key={name} className={isNumber ? "number" : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A cell with a whole number. */
export function Count({ value }: { value: number }) {
  return <td className="number">{value.toLocaleString("en")}</td>;
}

/** A cell with a number, or a dash if nobody knows it. */
export function Known<Value>({ value, text }: { value: Value | null; text: (value: Value) => string }) {
  return <td className="number">{value === null ? "–" : text(value)}</td>;
}
