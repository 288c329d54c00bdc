// `npm run docs`: writes docs/reference/layout.md.

import { writeFileSync } from "node:fs";
import { writeLayoutReference } from "./layout-reference.ts";

writeFileSync(new URL("../../docs/reference/layout.md", import.meta.url), writeLayoutReference());
