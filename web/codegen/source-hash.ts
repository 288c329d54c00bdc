// The SHA-256 of everything that the client is built from. The build writes it next to the client, so that packaging can
// check that a built client is of these sources. Run by itself it prints the hash.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const HASH_FILE = "sources.sha256";

const FOLDERS = ["src", "public"];
const FILES = [
  "index.html",
  "report.html",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "vite.config.ts",
  "vite.report.config.ts",
];

/** Of names and contents, in the order of the names, whatever the machine. */
export function hashSources(root: URL): string {
  const hash = createHash("sha256");
  for (const name of [...FILES, ...FOLDERS.flatMap((folder) => listFiles(root, folder))].sort()) {
    const content = readFileSync(new URL(encodeURI(name), root));
    hash.update(`${name}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

function listFiles(root: URL, folder: string): string[] {
  return readdirSync(new URL(`${folder}/`, root), { withFileTypes: true }).flatMap((entry) => {
    const name = `${folder}/${entry.name}`;
    return entry.isDirectory() ? listFiles(root, name) : [name];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(`${hashSources(new URL("../", import.meta.url))}\n`);
}
