import { useQuery } from "@tanstack/react-query";
import { useClient } from "../api/context";
import type { RunDetails } from "../api/types";
import { Copied } from "../shared/Facts";
import { StoredAt } from "../shared/StoredAt";
import { dashboardCommand } from "./outcomes";

/** Where more is known: the driver's log in S3, and the Spark UI of EMR Serverless. */
export function Links({ run }: { run: RunDetails }) {
  const client = useClient();
  const info = useQuery({ queryKey: ["info"], queryFn: () => client.info(), staleTime: Infinity });
  if (run.log_uri === null || info.data === undefined) return null;
  const { region, is_local: isLocal } = info.data;
  const command = isLocal ? null : dashboardCommand(run.log_uri, run.job_run_id, region);
  return (
    <ul className="settings">
      <li>
        The driver&apos;s log: <StoredAt uri={run.log_uri} label="the address of the log" />
      </li>
      {command !== null && (
        <li>
          The Spark UI: run this command for an address that is valid for an hour.{" "}
          <Copied text={command} label="the command" />
        </li>
      )}
    </ul>
  );
}
