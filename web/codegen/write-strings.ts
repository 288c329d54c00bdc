// `npm run codegen`: writes strings.txt from the sources; with --check it only says whether it is up to date.

import { readFileSync, writeFileSync } from "node:fs";
import { readSources } from "./read-sources.ts";
import { writeStrings } from "./strings.ts";

const root = new URL("../", import.meta.url);
const file = new URL("strings.txt", root);
const strings = writeStrings(readSources(root));
if (!process.argv.includes("--check")) writeFileSync(file, strings);
else if (readFileSync(file, "utf8") !== strings) {
  process.stderr.write("web/strings.txt is out of date: run `make codegen` and commit what it writes\n");
  process.exitCode = 1;
}
