import { describe, expect, it } from "vitest";
import type { TraceDescription } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { describeCoverage } from "../quality/reliability-cards.tsx";
import { describeRequest } from "../simulator/saved-results.tsx";
import { formatSizes } from "../simulator/size-card.tsx";
import { formatMeasured, formatRange, formatUnits, nameUnits, toInterval } from "./words.ts";

const plain = (text: string) => text.replaceAll("\u00a0", " ");

describe("formats of traces", () => {
  const trace = (size_unit: TraceDescription["size_unit"]) => ({ size_unit }) as TraceDescription;

  it("use the trace's own unit", () => {
    expect(formatUnits(1, "gpus")).toBe("1 GPU");
    expect(formatUnits(1200, "nodes")).toBe("1,200 nodes");
    expect(nameUnits([trace("gpus"), trace("gpus")])).toBe("GPUs");
    expect(nameUnits([trace("gpus"), trace("processors")])).toBe("GPUs or processors");
  });

  it("show a range as one value where both ends are the same", () => {
    expect(formatRange(4, 4, formatCount)).toBe("4");
    expect(formatRange(4, 8, formatCount)).toBe("4 – 8");
    expect(formatSizes({ low: 1, high: 1 })).toBe("1");
    expect(formatSizes({ low: 1025, high: 2048 })).toBe("1,025–2,048");
  });

  it("show an interval only where both ends are measured", () => {
    expect(plain(formatMeasured({ value: 0.5, low: 0.4, high: 0.6 }))).toBe("50 % (40 % to 60 %)");
    expect(plain(formatMeasured({ value: 0.5, low: 0.4, high: null }))).toBe("50 %");
    expect(toInterval({ value: 0.5, low: 0, high: 0.6 })).toEqual([0, 0.6]);
    expect(toInterval({ value: 0.5, low: null, high: 0.6 })).toBeNull();
    expect(toInterval({ value: 0.5 })).toBeNull();
  });
});

describe("coverage of predictions", () => {
  it("describes the 90 % intervals only", () => {
    const coverage = { nominal: 0.9, covered: 0.87, low: 0.8, high: 0.92, jobs: 240 };
    expect(plain(describeCoverage([{ ...coverage, nominal: 0.5 }, coverage]))).toBe(
      "87 % of the 90 % intervals contained the start (80 % to 92 %, 240 forecasts)",
    );
    expect(describeCoverage([{ ...coverage, nominal: 0.5 }])).toBe("–");
  });
});

describe("saved results", () => {
  it("name few orders and count many", () => {
    expect(describeRequest({ trace: "a", policies: ["fcfs", "sjf"], backfills: ["easy"] })).toBe("FCFS, SJF + EASY");
    expect(describeRequest({ trace: "a", policies: ["fcfs", "sjf", "f1"], backfills: [] })).toBe("3 orders + ");
  });
});
