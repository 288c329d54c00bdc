import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { serializeView } from "../src/layout/grammar.ts";
import { parseView } from "../src/layout/parse-view.ts";
import { LAYOUT_ATTRIBUTES } from "../src/state/picture.ts";
import { readDocument } from "../src/state/view-document.ts";
import { BINS, LAYER, MARK, type Property, SORT, UNIT_SORT, VIEW, writeLayoutReference } from "./layout-reference.ts";

const page = readFileSync(new URL("../../docs/reference/layout.md", import.meta.url), "utf8");

/** A whole view around one property with its example. */
const PLACES: readonly [name: string, Readonly<Record<string, Property>>, (part: object) => object][] = [
  ["view", VIEW, (part) => ({ ...part })],
  ["layer", LAYER, (part) => ({ layers: [{ by: "node", ...part }] })],
  ["sort", SORT, (part) => ({ layers: [{ by: "node", sort: { by: "value", of: "run_s", ...part } }] })],
  ["bins", BINS, (part) => ({ layers: [{ by: { metric: "power_watts", bins: 3, ...part } }] })],
  ["mark", MARK, (part) => ({ mark: { ...part } })],
  ["sort of units", UNIT_SORT, (part) => ({ mark: { sort: { by: "node", ...part } } })],
];
const EXAMPLES = PLACES.flatMap(([place, properties, around]) =>
  Object.entries(properties).map(([name, { example, initial }]) => ({ place, name, example, initial, around })),
);

describe("layout reference", () => {
  it("is what is committed when the grammar has not changed", () => {
    expect(writeLayoutReference(), "run `make docs`").toBe(page);
  });

  it.each(EXAMPLES)("has an example of $place's $name that is read and is not the default", (row) => {
    const { view, leftOut } = parseView(row.around({ [row.name]: row.example }), LAYOUT_ATTRIBUTES);
    expect(leftOut).toEqual([]);
    expect(row.example).not.toEqual(row.initial);
    // Written again it is still there: nothing else was read in its place.
    expect(serializeView(view)).toContain(`"${row.name}":`);
  });

  it("shows built-in views that open as they are", () => {
    const documents = [...page.matchAll(/```json\n([^`]+)```/g)].map(([, text = ""]) => readDocument(text));
    expect(documents).toHaveLength(4);
    for (const document of documents) expect(document?.leftOut).toEqual([]);
  });
});
