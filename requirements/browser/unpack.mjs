// Unpacks the Chromium of the package into this folder, with the libraries that a machine without a desktop lacks.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = dirname(fileURLToPath(import.meta.url));
process.env.TMPDIR = folder;
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x"; // the package unpacks its libraries there only
const { default: chromium } = await import("@sparticuz/chromium");
const program = await chromium.executablePath();
if (program !== join(folder, "chromium")) throw new Error(`Chromium was unpacked to ${program}`);
