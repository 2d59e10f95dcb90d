import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../.build/console",
    emptyOutDir: true,
    // The policy of the page allows no data: address.
    assetsInlineLimit: 0,
    license: { fileName: "licenses.md" },
    modulePreload: { polyfill: false },
    target: "es2024",
    // The layout of graphs is large, and it is loaded when a graph is shown.
    chunkSizeWarningLimit: 1600,
  },
  test: { setupFiles: ["test/clock.ts"] },
});
