/** The envelopes of a run by outcome: those that went wrong are open. */

import { useState } from "react";
import type { RunDetails, EnvelopeLine } from "../api/types";
import { counted, dollars, duration, rounded } from "../shared/format";
import { Fold } from "../shared/Fold";
import { Copy } from "../shared/parts";
import { type Column, Known, WideTable } from "../shared/WideTable";
import { addressOf } from "../view";
import { type OutcomeGroup, outcomeGroups } from "./outcomes";

/** A group of more envelopes is folded at first, unless it went wrong. */
const FOLDED = 60;

const COLUMNS: readonly Column[] = [
  { name: "Task" },
  { name: "Hop", isNumber: true },
  { name: "Attempt", isNumber: true },
  { name: "Duration", isNumber: true },
  { name: "vCPU-hours", isNumber: true },
  { name: "Dollars", isNumber: true },
  { name: "Error" },
];

interface MembersProps {
  run: RunDetails;
  members: readonly EnvelopeLine[];
  /** Read more envelopes; undefined if there are none. */
  more: (() => void) | undefined;
}

export function Members({ run, members, more }: MembersProps) {
  return (
    <>
      {members.length < run.envelopes && members.length > 0 && (
        <p className="quiet">
          The first {members.length.toLocaleString("en")} of {counted(run.envelopes, "envelope")}.
        </p>
      )}
      {members.length === 0 && <p>The envelopes of this run are unknown.</p>}
      {outcomeGroups(members).map((group) => (
        <Group key={group.outcome} group={group} />
      ))}
      {more !== undefined && (
        <button type="button" onClick={more}>
          More envelopes
        </button>
      )}
      {run.shared !== null && <p className="quiet">The cost of the run is divided among its envelopes {run.shared}.</p>}
    </>
  );
}

function Group({ group: { outcome, members, isBad } }: { group: OutcomeGroup }) {
  const [isOpen, setOpen] = useState(isBad || members.length <= FOLDED);
  return (
    <Fold title={`${outcome}: ${counted(members.length, "envelope")}`} isOpen={isOpen} onToggle={setOpen}>
      <WideTable label={`Envelopes: ${outcome}`} columns={COLUMNS}>
        {members.map((member) => (
          <Row key={`${member.id} ${member.generation} ${member.position}`} member={member} />
        ))}
      </WideTable>
    </Fold>
  );
}

function Row({ member }: { member: EnvelopeLine }) {
  return (
    <tr>
      <th scope="row">
        <span className="id">
          <a href={addressOf({ page: "task", id: member.id, tab: "overview" })}>{member.id}</a>
          <Copy text={member.id} label={`the id ${member.id}`} />
        </span>
      </th>
      <td className="number">{member.position}</td>
      <td className="number">{member.attempt}</td>
      <td className="number">{member.milliseconds > 0 ? duration(member.milliseconds) : "–"}</td>
      <Known value={member.usage} text={(usage) => rounded(usage.vcpu_hours)} />
      <Known value={member.dollars} text={dollars} />
      <td className="error">
        <code>{member.error}</code>
      </td>
    </tr>
  );
}
