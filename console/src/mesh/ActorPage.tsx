/** An actor: its numbers and settings, its dead letters, and what it has logged. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useClient } from "../api/context";
import { now } from "../shared/clock";
import { Copy } from "../shared/parts";
import { LogLines, Refused } from "../shared/LogLines";
import { Tabs } from "../shared/Tabs";
import { usePolling } from "../shared/usePolling";
import { show } from "../shared/useView";
import { earliest } from "../tasks/matching";
import { type View } from "../view";
import { ActorOverview } from "./ActorOverview";
import { DeadLetters } from "./DeadLetters";
import { AGES, type ActorTab, DEFAULT_AGE, type LogAge } from "./view";
import "../shared/tables.css";
import "./mesh.css";

type ActorView = Extract<View, { page: "actor" }>;

const AGE_NAMES: Record<LogAge, string> = { "15m": "15 minutes", "1h": "hour", "6h": "6 hours", "24h": "24 hours", "7d": "7 days" };

export default function ActorPage({ view }: { view: ActorView }) {
  const client = useClient();
  const polling = usePolling();
  const actor = useQuery({
    queryKey: ["actor", view.actor],
    queryFn: () => client.actor(view.actor),
    refetchInterval: polling,
    retry: false,
  });
  const letters = actor.data?.numbers.dead_letters ?? 0;
  const titles: Record<ActorTab, string> = {
    overview: "Overview",
    "dead-letters": letters > 0 ? `Dead letters (${letters.toLocaleString("en")})` : "Dead letters",
    logs: "Logs",
  };
  return (
    <>
      <h1>
        <span className="id">
          {view.actor}
          <Copy text={view.actor} label="the name of the actor" />
        </span>
      </h1>
      <Tabs
        label="Parts of the actor"
        titles={titles}
        tab={view.tab}
        onOpen={(tab) => show({ page: "actor", actor: view.actor, tab }, { inPlace: true })}
      >
        {view.tab === "dead-letters" && <DeadLetters actor={view.actor} />}
        {view.tab === "logs" && <ActorLogs view={view} />}
        {view.tab === "overview" &&
          (actor.data === undefined ? (
            actor.error === null && <p role="status">Loading…</p>
          ) : (
            <ActorOverview details={actor.data} />
          ))}
        {view.tab === "overview" && actor.error !== null && <Refused error={actor.error} />}
      </Tabs>
    </>
  );
}

function ActorLogs({ view: { actor, age = DEFAULT_AGE } }: { view: ActorView }) {
  const client = useClient();
  const since = useMemo(() => earliest(age, now()), [age]);
  return (
    <>
      <label className="choice">
        Lines of the last{" "}
        <select
          value={age}
          onChange={({ target }) =>
            show({ page: "actor", actor, tab: "logs", age: target.value as LogAge }, { inPlace: true })
          }
        >
          {AGES.map((each) => (
            <option key={each} value={each}>
              {AGE_NAMES[each]}
            </option>
          ))}
        </select>
      </label>
      <LogLines
        subject={["actor", actor, since]}
        read={(query) => client.actorLogs(actor, { ...query, since })}
        nothing="The actor has logged nothing in this time."
      />
    </>
  );
}
