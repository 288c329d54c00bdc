import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nameAt } from "../../../api/columns.ts";
import lengths from "../../../api/fixtures/marey.json" with { type: "json" };
import { type Marey, toMarey } from "../../../api/marey.ts";
import { splitTables } from "../../../api/traces-client.ts";
import { SPAN_STYLES, TIERS } from "../../../layers/marey/marks.ts";
import { formatNs, listNsTicks } from "./axis.ts";
import { computeWait, type DrawnLook, drawMarey } from "./drawn.ts";
import { kindOf } from "./kinds.ts";
import { findLane, findRankLabel, keyOfRow, placeRows } from "./rows.ts";
import { clampWindow, moveWindow, NO_HISTORY, padWindow, pushWindow, stepHistory, zoomWindow } from "./windows.ts";

function readPipeline(): Marey {
  const bytes = new Uint8Array(readFileSync(new URL("../../../api/fixtures/marey.arrow", import.meta.url)));
  const [spans, rows, bands] = splitTables(bytes, lengths["X-Tables"]);
  if (!spans || !rows || !bands) throw new Error("three tables are expected");
  return toMarey(spans, rows, bands);
}

const LOOK: DrawnLook = {
  by: "class",
  text: "",
  colorOf: (kind) => kind.length,
  rampOf: (share) => Math.round(share * 100),
  step: null,
};

describe("the drawing of a pipeline", () => {
  const marey = readPipeline();
  const drawn = drawMarey(marey, 0, LOOK);

  it("puts phases and messages above device activity", () => {
    for (let span = 0; span < marey.spans.count; span += 1) {
      const [name, tier] = [nameAt(marey.spans.class, span), drawn.tiers[span]];
      if (tier === TIERS.whole) continue;
      expect(name === "phase" || name === "communication").toBe(tier !== TIERS.lower);
    }
    expect(drawn.tiers.some((tier) => tier === TIERS.upper)).toBe(true);
  });

  it("draws waiting as a thin bar, then working", () => {
    const { spans } = drawn;
    const thin = Array.from(spans.style.subarray(0, spans.count)).filter((style) => style === SPAN_STYLES.thin).length;
    expect(thin).toBeGreaterThan(20);
    expect(spans.count).toBeGreaterThan(marey.spans.count);
    for (let mark = 0; mark < spans.count; mark += 1)
      expect(spans.endNs[mark]).toBeGreaterThanOrEqual(spans.startNs[mark] ?? 0);
  });

  it("gives one instance number to spans that are connected by bands", () => {
    for (let band = 0; band < marey.bands.count; band += 1) {
      expect(drawn.instance[marey.bands.fromSpan[band] ?? 0]).toBe(drawn.instance[marey.bands.toSpan[band] ?? 0]);
    }
  });

  it("highlights search matches and dims other steps", () => {
    const searched = drawMarey(marey, 0, { ...LOOK, text: "forward mb3" });
    expect(searched.matchCount).toBeGreaterThan(0);
    expect(drawMarey(marey, 0, { ...LOOK, text: "no such thing" }).matchCount).toBe(0);
    const first = drawMarey(marey, 0, { ...LOOK, step: 4 });
    expect(Math.min(...first.spans.opacity.subarray(0, first.spans.count))).toBeLessThan(0.5);
  });

  it("draws a message to the end of its receive's wait", () => {
    const { spans, bands } = marey;
    for (let band = 0; band < bands.count; band += 1) {
      const to = bands.toSpan[band] ?? 0;
      if (nameAt(bands.kind, band) !== "message" || (spans.members[to] ?? 1) > 1) continue;
      const arrives = (spans.startNs[to] ?? 0) + computeWait(spans, to);
      expect((drawn.bands.toStartNs[band] ?? 0) / Math.max(1, arrives)).toBeGreaterThan(0.999);
    }
  });
});

describe("kinds", () => {
  it("are phases where there are any, else classes", () => {
    expect(kindOf("compute", "forward")).toBe("forward");
    expect(kindOf("compute", null)).toBe("compute");
    expect(kindOf("communication", "backward")).toBe("communication");
    expect(kindOf("memory", "forward")).toBe("memory");
    expect(kindOf("phase", "data")).toBe("data");
  });
});

const plain = (text: string) => text.replace("\u00a0", " ");

describe("the time axis", () => {
  it("has round times, few enough, in one unit", () => {
    expect(listNsTicks(0, 400e6, 0, 5).map(({ text }) => plain(text))).toEqual([
      "0 ms",
      "100 ms",
      "200 ms",
      "300 ms",
      "400 ms",
    ]);
    const reach = fc.double({ min: 100, max: 1e12, noNaN: true });
    fc.assert(
      fc.property(reach, reach, fc.integer({ min: 1, max: 30 }), (from, length, most) => {
        const ticks = listNsTicks(from, from + length, 0, most);
        expect(ticks.length).toBeLessThanOrEqual(most + 1);
        expect(new Set(ticks.map(({ text }) => text.split("\u00a0")[1])).size).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("has distinct texts for close ticks", () => {
    const texts = listNsTicks(61_334_000, 61_335_000, 0, 6).map(({ text }) => text);
    expect(new Set(texts).size).toBe(texts.length);
    expect(texts.length).toBeGreaterThan(3);
  });

  it("formats durations with their unit", () => {
    expect([5_850_000, 120_400, 1.2e9, 83, null].map((ns) => plain(formatNs(ns)))).toEqual([
      "5.85 ms",
      "120 µs",
      "1.20 s",
      "83 ns",
      "–",
    ]);
  });
});

describe("rows", () => {
  it("share the height where they are few, and scroll where they are many", () => {
    const few = placeRows(
      Array.from({ length: 4 }, () => ({ depth: 0 })),
      500,
    );
    expect(few.total).toBeLessThanOrEqual(500);
    const many = placeRows(
      Array.from({ length: 64 }, () => ({ depth: 1 })),
      500,
    );
    expect(many.total).toBeGreaterThan(500);
    for (let row = 1; row < 64; row += 1) {
      expect(many.top[row]).toBeGreaterThan((many.top[row - 1] ?? 0) + (many.height[row - 1] ?? 0));
    }
    expect(findLane(many, (many.top[7] ?? 0) + 2)).toBe(7);
    expect(findLane(many, -50)).toBeNull();
  });

  it("are named in links by stage or by rank", () => {
    expect(keyOfRow({ depth: 0, stage: 2, rank: null })).toBe("2");
    expect(keyOfRow({ depth: 1, stage: 2, rank: 11 })).toBe("r11");
  });
});

describe("names of lanes", () => {
  it("name the rank once, and not below a row of that rank", () => {
    const lanes = [0, 0, 1].map((rank) => ({ depth: 2, rank }));
    expect(lanes.map((_, at) => findRankLabel(lanes, at))).toEqual(["rank 0", null, "rank 1"]);
    const opened = [{ depth: 1, rank: 0 }, ...lanes.slice(0, 2), { depth: 1, rank: 1 }];
    expect(opened.map((_, at) => findRankLabel(opened, at))).toEqual([null, null, null, null]);
  });
});

describe("windows", () => {
  const extent = { fromNs: 0, toNs: 1000 };

  it("stay within the trace, and zoom about a fixed time", () => {
    const zoomed = zoomWindow({ fromNs: 0, toNs: 1000 }, 250, 0.5, extent);
    expect((250 - zoomed.fromNs) / (zoomed.toNs - zoomed.fromNs)).toBeCloseTo(0.25);
    expect(moveWindow({ fromNs: 0, toNs: 500 }, -3, extent).fromNs).toBeCloseTo(-20);
    expect(clampWindow({ fromNs: -5000, toNs: 9000 }, extent)).toEqual({ fromNs: -20, toNs: 1020 });
    expect(padWindow(400, 600, 0.5, extent)).toEqual({ fromNs: 300, toNs: 700 });
  });

  it("go back and forward until a new window is pushed", () => {
    const [a, b] = [
      { fromNs: 0, toNs: 10 },
      { fromNs: 2, toNs: 5 },
    ];
    const history = pushWindow(pushWindow(NO_HISTORY, null), a);
    const back = stepHistory(history, b, "back");
    expect(back?.window).toEqual(a);
    const forward = stepHistory(back?.history ?? NO_HISTORY, a, "forward");
    expect(forward?.window).toEqual(b);
    expect(pushWindow(back?.history ?? NO_HISTORY, a).future).toEqual([]);
    expect(stepHistory(NO_HISTORY, a, "back")).toBeNull();
  });
});
