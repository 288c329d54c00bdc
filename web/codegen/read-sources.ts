// The sources of the page by their path below `web`, without tests, types and shaders.

import { readdirSync, readFileSync } from "node:fs";

const LEFT_OUT = /\.test\.tsx?$|\.d\.ts$|^src\/api\/(fixtures\/|generated\.ts)|^src\/layers\/.*shaders\.ts$/;

export function readSources(root: URL): Readonly<Record<string, string>> {
  const paths = readdirSync(new URL("src/", root), { recursive: true, encoding: "utf8" })
    .map((name) => `src/${name}`)
    .filter((path) => /\.tsx?$/.test(path) && !LEFT_OUT.test(path))
    .concat("index.html", "report.html");
  return Object.fromEntries(paths.map((path) => [path, readFileSync(new URL(path, root), "utf8")]));
}
