import { useMemo, useSyncExternalStore } from "react";
import { addressOf, parseView, type View } from "../view";

function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}

/** Return what the address names, and follow it. */
export function useView(): View {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return useMemo(() => parseView(hash), [hash]);
}

/** Show another view: a new entry of the history, or in place of the present one. */
export function show(view: View, { inPlace = false } = {}): void {
  const address = addressOf(view);
  if (inPlace) {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = address;
  }
}
