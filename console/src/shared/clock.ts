/** The clock of the page. No other module reads one, so ages and times agree, and a test sets one clock for all. */

import { useEffect, useState } from "react";

const TICK_MILLISECONDS = 1000;

/** Return the time, in milliseconds since 1970. */
export function now(): number {
  return Date.now();
}

/** Return the time, each second while it counts. */
export function useNow(counts: boolean): number {
  const [at, setAt] = useState(now);
  useEffect(() => {
    if (!counts) return undefined;
    const timer = setInterval(() => setAt(now()), TICK_MILLISECONDS);
    return () => clearInterval(timer);
  }, [counts]);
  return at;
}
