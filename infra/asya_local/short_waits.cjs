// `cdk deploy` looks every five seconds whether a stack is done. The local cloud is done within milliseconds, so the waits become short.
// Only waits have the function of a promise as their callback; the time limits of calls have one of their own.
"use strict";

const EVERY_MS = 5000;
const SHORT_MS = 100;
const original = globalThis.setTimeout;
const isWait = (callback) => /\{ \[native code\] \}$/.test(Function.prototype.toString.call(callback));

globalThis.setTimeout = Object.assign(function setTimeout(callback, milliseconds, ...others) {
  const isLook = milliseconds === EVERY_MS && typeof callback === "function" && isWait(callback);
  return original(callback, isLook ? SHORT_MS : milliseconds, ...others);
}, original);
