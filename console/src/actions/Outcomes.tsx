/** What became of each task of an action on many. */

import { counted } from "../shared/format";
import { addressOf } from "../view";
import type { Outcome } from "./bulk";

export function Outcomes({ outcomes }: { outcomes: readonly Outcome[] }) {
  const refused = outcomes.filter((each) => each.problem !== "");
  return (
    <>
      <p>
        {counted(outcomes.length - refused.length, "task")} done, {refused.length} refused.
      </p>
      {refused.length > 0 && (
        <ul className="refused">
          {refused.map((each) => (
            <li key={each.id}>
              <a href={addressOf({ page: "task", id: each.id, tab: "overview" })}>{each.id}</a>: {each.problem}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
