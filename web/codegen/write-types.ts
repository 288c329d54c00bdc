// `npm run codegen`: writes src/api/generated.ts from openapi.json, both next to this folder.

import { readFileSync, writeFileSync } from "node:fs";
import { generateTypes, type OpenApi } from "./types.ts";

const root = new URL("../", import.meta.url);
const document = JSON.parse(readFileSync(new URL("openapi.json", root), "utf8")) as OpenApi;
writeFileSync(new URL("src/api/generated.ts", root), generateTypes(document));
