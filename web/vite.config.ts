// Builds the client into the Python package, and in development passes API requests on to a running server.

import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const server = "http://127.0.0.1:8321";

/** The view that the page opens with: asked for along with the page's own script instead of by it. */
const FIRST_VIEW = "src/views/overview/index.tsx";

function preloadFirstView(): Plugin {
  return {
    name: "preload-first-view",
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle }) {
        const chunks = Object.values(bundle ?? {}).filter((file) => file.type === "chunk");
        const first = chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith(FIRST_VIEW));
        const needed = chunks.filter((chunk) => chunk === first || first?.imports.includes(chunk.fileName));
        const styles = needed.flatMap(({ viteMetadata }) => [...(viteMetadata?.importedCss ?? [])]);
        return [
          ...needed.map(({ fileName }) => ({ rel: "modulepreload", crossorigin: true, href: `/${fileName}` })),
          ...styles.map((file) => ({ rel: "stylesheet", crossorigin: true, href: `/${file}` })),
        ]
          .filter(({ href }) => !html.includes(href))
          .map((attrs) => ({ tag: "link", injectTo: "head", attrs }));
      },
    },
  };
}

export default defineConfig({
  plugins: [react(), preloadFirstView()],
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
    setupFiles: ["property-tests.ts"],
    // Property tests on a busy machine take their time; only what hangs shall fail.
    testTimeout: 60_000,
  },
});
