// The table in import-rules.json says which folder may import which; this reads every import and names those that are
// wrong. Views never import one another.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import rules from "../import-rules.json" with { type: "json" };

const SRC = dirname(fileURLToPath(import.meta.url));
const IMPORT = /(?:\bfrom|\bimport|\bimport\()\s*"(\.[^"]+)"/g;

interface Import {
  readonly from: string;
  readonly to: string;
}

function listImports(): readonly Import[] {
  return readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path) && path.includes("/"))
    .flatMap((path) => {
      const text = readFileSync(join(SRC, path), "utf8");
      return [...text.matchAll(IMPORT)].map(([, target = ""]) => ({
        from: path,
        to: relative(SRC, join(SRC, dirname(path), target)),
      }));
    });
}

function findFault({ from, to }: Import, table: Readonly<Record<string, readonly string[]>>): string | null {
  const [source = "", sourceView] = from.split("/");
  const [target = "", targetView] = to.split("/");
  const allowed = table[source];
  if (allowed === undefined) return `${from}: the folder ${source} is not in import-rules.json`;
  if (source === target) {
    const isOtherView = source === "views" && sourceView !== targetView;
    return isOtherView ? `${from} imports ${to}: views never import one another` : null;
  }
  if (allowed.includes(target)) return null;
  return `${from} imports ${to}: ${source} may import only ${allowed.join(", ") || "nothing of ours"}`;
}

describe("import rules", () => {
  it("are kept by every file", () => {
    const imports = listImports();
    expect(imports.length).toBeGreaterThan(100);
    expect(imports.map((entry) => findFault(entry, rules)).filter((fault) => fault !== null)).toEqual([]);
  });

  it("name the import that breaks them", () => {
    expect(findFault({ from: "base/time.ts", to: "api/client.ts" }, rules)).toBe(
      "base/time.ts imports api/client.ts: base may import only nothing of ours",
    );
    expect(findFault({ from: "views/rules/index.tsx", to: "views/overview/words.ts" }, rules)).toContain("one another");
    expect(findFault({ from: "helpers/a.ts", to: "base/time.ts" }, rules)).toContain("not in import-rules.json");
    expect(findFault({ from: "views/overview/index.tsx", to: "data/queries.ts" }, rules)).toBeNull();
  });
});
