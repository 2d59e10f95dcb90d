/** Times and sizes as people read them, in the reader's language and zone. */

import { now } from "./clock";

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const DAY_MILLISECONDS = 86_400_000;

/** Return a time within a day from now with seconds, and any other one with its date. */
export function shortTime(at: string, current: number = now()): string {
  const time = Date.parse(at);
  if (Number.isNaN(time)) return at;
  return (Math.abs(current - time) < DAY_MILLISECONDS ? TIME : DAY).format(time);
}

/** Return a time with its date and zone. */
export function fullTime(at: string): string {
  const time = Date.parse(at);
  return Number.isNaN(time) ? at : FULL.format(time);
}

/** Return a duration, such as `340 ms`, `12.5 s`, `3 min 20 s` or `2 h 5 min`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Return a number with its noun: `1 task`, `37 tasks`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Return a number with at most three digits that count, such as `1,240`, `12.5` or `0.0042`. */
export function rounded(value: number): string {
  const isLarge = Math.abs(value) >= 1000;
  return value.toLocaleString("en", isLarge ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 });
}

/** Return an amount of dollars. Small amounts keep two digits that count. */
export function dollars(amount: number): string {
  const digits = amount >= 0.995 || amount === 0 ? 2 : Math.min(8, 1 - Math.floor(Math.log10(amount)));
  return `$${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: Math.max(2, digits) })}`;
}

/** Return a number of bytes, such as `640 B`, `12.5 KiB` or `3 MiB`. */
export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  const kibibytes = size / 1024;
  return kibibytes < 1024 ? `${rounded(kibibytes)} KiB` : `${rounded(kibibytes / 1024)} MiB`;
}
