import { toneOf } from "./outcomes";

const SIGNS = { good: "✓", bad: "✕", live: "●", quiet: "○" };

/** The state of a run: a sign, and the words of the gateway. */
export function RunState({ state, isOpen }: { state: string; isOpen: boolean }) {
  const tone = toneOf(state, isOpen);
  return (
    <span className={`tone ${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]}</span> {state}
    </span>
  );
}
