import { Copied } from "../shared/Facts";
import type { Trouble } from "./troubles";

/** The troubles of an actor in one line, and below it what repairs them. */
export function Troubles({ troubles }: { troubles: readonly Trouble[] }) {
  return (
    <>
      {troubles.map(({ text, detail }) => (detail === undefined ? text : `${text} (${detail})`)).join(", ")}
      {troubles.map(
        ({ repair }) =>
          repair !== undefined && (
            <span key={repair} className="repair">
              <Copied text={repair} label="what repairs it" />
            </span>
          ),
      )}
    </>
  );
}
