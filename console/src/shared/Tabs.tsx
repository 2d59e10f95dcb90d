/** Parts of a page of which one is shown. The arrow keys move between them. */

import type { KeyboardEvent, ReactNode } from "react";

interface TabsProps<Tab extends string> {
  label: string;
  titles: Record<Tab, string>;
  tab: Tab;
  onOpen: (tab: Tab) => void;
  children: ReactNode;
}

export function Tabs<Tab extends string>({ label, titles, tab, onOpen, children }: TabsProps<Tab>) {
  const tabs = Object.keys(titles) as Tab[];
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length] ?? tab;
    onOpen(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <>
      <div role="tablist" aria-label={label} className="tabs" onKeyDown={move}>
        {tabs.map((each) => (
          <button
            type="button"
            role="tab"
            key={each}
            id={`tab-${each}`}
            aria-selected={each === tab}
            aria-controls={each === tab ? "panel" : undefined}
            tabIndex={each === tab ? 0 : -1}
            onClick={() => onOpen(each)}
          >
            {titles[each]}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {children}
      </div>
    </>
  );
}
