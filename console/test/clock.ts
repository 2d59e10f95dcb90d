/** Sets the clock of the tests, where `python -m tests.calendar` runs them on another day. */

import { vi } from "vitest";

declare const process: { env: Record<string, string | undefined> };

const offset = Number(process.env["ASYA_TEST_CLOCK_OFFSET"] ?? 0);
if (offset !== 0) vi.setSystemTime(Date.now() + offset * 1000);
