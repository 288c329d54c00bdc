import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { nameAt } from "./columns.ts";
import lengths from "./fixtures/marey.json" with { type: "json" };
import { toMarey } from "./marey.ts";
import { splitTables } from "./traces-client.ts";

function readFixture() {
  const bytes = new Uint8Array(readFileSync(new URL("./fixtures/marey.arrow", import.meta.url)));
  const tables = splitTables(bytes, lengths["X-Tables"]);
  const [spans, rows, bands] = tables;
  if (!spans || !rows || !bands) throw new Error("three tables are expected");
  return toMarey(spans, rows, bands);
}

describe("a Marey graph on the wire", () => {
  const { spans, rows, bands } = readFixture();

  it("has rows of ranks, and of the lanes of one that is opened", () => {
    expect(rows.filter(({ depth }) => depth === 1).map(({ label }) => label)).toEqual([
      "rank 0",
      "rank 1",
      "rank 2",
      "rank 3",
    ]);
    expect(rows.filter(({ isOpen }) => isOpen).map(({ rank }) => rank)).toEqual([2]);
    expect(rows.filter(({ depth }) => depth === 2).every(({ rank, canOpen }) => rank === 2 && !canOpen)).toBe(true);
  });

  it("has spans in the order of rows and starts, with what is not known left open", () => {
    expect(spans.count).toBeGreaterThan(100);
    for (let span = 1; span < spans.count; span += 1) {
      const [before, row] = [spans.row[span - 1] ?? 0, spans.row[span] ?? 0];
      expect(before < row || (before === row && (spans.startNs[span - 1] ?? 0) <= (spans.startNs[span] ?? 0))).toBe(
        true,
      );
    }
    const merged = Array.from(spans.members).findIndex((count) => count > 1);
    if (merged >= 0) expect(spans.span[merged]).toBeNaN();
    expect(new Set(spans.class.names)).toContain("phase");
  });

  it("has bands between spans that are there", () => {
    expect(bands.count).toBeGreaterThan(0);
    for (let band = 0; band < bands.count; band += 1) {
      expect(bands.fromSpan[band]).toBeLessThan(spans.count);
      expect(bands.toSpan[band]).toBeLessThan(spans.count);
      expect(["same", "collective", "message"]).toContain(nameAt(bands.kind, band));
    }
  });
});

describe("several tables in one body", () => {
  it("are cut where the header says", () => {
    const bytes = new Uint8Array(readFileSync(new URL("./fixtures/marey.arrow", import.meta.url)));
    expect(splitTables(bytes, lengths["X-Tables"]).map(({ rowCount }) => rowCount > 0)).toEqual([true, true, true]);
  });
});
