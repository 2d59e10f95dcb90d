import type { ReactNode } from "react";

interface FoldProps {
  title: ReactNode;
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
  children: ReactNode;
}

/** A part of a page that folds. What is folded is not in the document. */
export function Fold({ title, isOpen, onToggle, children }: FoldProps) {
  return (
    <details className="folded" open={isOpen} onToggle={({ currentTarget }) => onToggle(currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children}
    </details>
  );
}
