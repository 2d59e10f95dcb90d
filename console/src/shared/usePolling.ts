import { useQuery } from "@tanstack/react-query";
import { useClient } from "../api/context";

const LOCAL_MILLISECONDS = 700;
/** SQS itself counts approximately, a minute late at worst, and each count of a queue costs. */
const AWS_MILLISECONDS = 5000;
const FAILED_MILLISECONDS = 10_000;

/** Return how long a query waits before it reads numbers again. A hidden tab does not poll. */
export function usePolling(): (query: { state: { error: unknown } }) => number {
  const client = useClient();
  const info = useQuery({ queryKey: ["info"], queryFn: () => client.info(), staleTime: Infinity });
  const pause = info.data?.is_local === true ? LOCAL_MILLISECONDS : AWS_MILLISECONDS;
  return ({ state }) => (state.error === null ? pause : FAILED_MILLISECONDS);
}
