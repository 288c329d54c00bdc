// Builds the client into the Python package, and in development passes API requests on to a running server.

import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = "http://127.0.0.1:8321";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/clusterscape/serve/static",
    emptyOutDir: true,
    // The first to know light-dark(): older ones would get a second copy of every color.
    target: ["chrome123", "firefox128", "safari17.5"],
    assetsInlineLimit: 0,
  },
  server: {
    host: "127.0.0.1",
    proxy: { "/api": server, "/healthz": server },
  },
  test: {
    include: ["src/**/*.test.{ts,tsx}", "codegen/**/*.test.ts"],
    environment: "node",
    // Property tests on a busy machine take their time; only what hangs shall fail.
    testTimeout: 60_000,
  },
});
