// Builds the page of reports: one HTML file with its scripts, styles and font inside, into which `clusterscape … --html` writes
// the answers. Built after the client, into the same folder.

import { createHash } from "node:crypto";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { HASH_FILE, hashSources } from "./codegen/source-hash.ts";
import client from "./vite.config.ts";

const PAGE = "report.html";

/** Nothing may be fetched and no other script may run, whatever names the answers hold. Menus put a <style> into the page. */
function writePolicy(script: string): string {
  return [
    "default-src 'none'",
    `script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`,
    "style-src 'unsafe-inline'",
    "img-src data: blob:",
    "font-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

/** Puts the one script and the one style sheet into the page. */
function inlineFiles(): Plugin {
  return {
    name: "inline-files",
    apply: "build",
    enforce: "post",
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const page = bundle[PAGE];
      const scripts = files.flatMap((file) => (file.type === "chunk" ? [file.code] : []));
      const styles = files.flatMap((file) =>
        file.type === "asset" && file.fileName.endsWith(".css") ? [String(file.source)] : [],
      );
      if (page?.type !== "asset" || scripts.length !== 1) this.error(`${PAGE} is not one page with one script`);
      // An end tag or a comment in a string of the script would end or hide it.
      const script = (scripts[0] ?? "").trim().replaceAll(/<(?=\/script|!--)/gi, "\\x3C");
      const head = [
        `<meta http-equiv="Content-Security-Policy" content="${writePolicy(script)}" />`,
        `<style>${styles.join("\n")}</style>`,
      ].join("\n");
      page.source = String(page.source)
        .replaceAll(/<script type="module"[^>]*><\/script>\s*|<link rel="stylesheet"[^>]*>\s*/g, "")
        .replace("</head>", () => `${head}\n  </head>`)
        .replace("</body>", () => `<script type="module">${script}</script>\n  </body>`);
      for (const name of Object.keys(bundle)) if (name !== PAGE) delete bundle[name];
    },
  };
}

/** Says of which sources the built client is, once all of it is built; tools/hatch_build.py compares it. */
function writeSourceHash(): Plugin {
  return {
    name: "write-source-hash",
    apply: "build",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler() {
        const source = `${hashSources(new URL("./", import.meta.url))}\n`;
        this.emitFile({ type: "asset", fileName: HASH_FILE, source });
      },
    },
  };
}

export default defineConfig({
  plugins: [react(), inlineFiles(), writeSourceHash()],
  publicDir: false,
  build: {
    ...client.build,
    emptyOutDir: false,
    assetsInlineLimit: Number.POSITIVE_INFINITY,
    cssCodeSplit: false,
    modulePreload: false,
    rolldownOptions: { input: PAGE, output: { codeSplitting: false } },
  },
});
