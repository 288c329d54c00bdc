import { describe, expect, it } from "vitest";
import type { TraceDescription } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { sayCoverage } from "../quality/reliability-cards.tsx";
import { sayAsked } from "../simulator/kept-results.tsx";
import { saySizes } from "../simulator/size-card.tsx";
import { barOf, nameUnits, sayMeasured, sayRange, sayUnits } from "./words.ts";

const plain = (text: string) => text.replaceAll("\u00a0", " ");

describe("words of traces", () => {
  const trace = (size_unit: TraceDescription["size_unit"]) => ({ size_unit }) as TraceDescription;

  it("count in the trace's own unit", () => {
    expect(sayUnits(1, "gpus")).toBe("1 GPU");
    expect(sayUnits(1200, "nodes")).toBe("1,200 nodes");
    expect(nameUnits([trace("gpus"), trace("gpus")])).toBe("GPUs");
    expect(nameUnits([trace("gpus"), trace("processors")])).toBe("GPUs or processors");
  });

  it("say a range once where both ends are the same", () => {
    expect(sayRange(4, 4, formatCount)).toBe("4");
    expect(sayRange(4, 8, formatCount)).toBe("4 – 8");
    expect(saySizes({ low: 1, high: 1 })).toBe("1");
    expect(saySizes({ low: 1025, high: 2048 })).toBe("1,025–2,048");
  });

  it("have an interval only where both of its ends are measured", () => {
    expect(plain(sayMeasured({ value: 0.5, low: 0.4, high: 0.6 }))).toBe("50 % (40 % to 60 %)");
    expect(plain(sayMeasured({ value: 0.5, low: 0.4, high: null }))).toBe("50 %");
    expect(barOf({ value: 0.5, low: 0, high: 0.6 })).toEqual([0, 0.6]);
    expect(barOf({ value: 0.5, low: null, high: 0.6 })).toBeNull();
    expect(barOf({ value: 0.5 })).toBeNull();
  });
});

describe("words of predictions", () => {
  it("say how often the 90 % intervals held, and nothing of other levels", () => {
    const coverage = { nominal: 0.9, covered: 0.87, low: 0.8, high: 0.92, jobs: 240 };
    expect(plain(sayCoverage([{ ...coverage, nominal: 0.5 }, coverage]))).toBe(
      "87 % of the 90 % intervals held (80 % to 92 %, 240 forecasts)",
    );
    expect(sayCoverage([{ ...coverage, nominal: 0.5 }])).toBe("–");
  });
});

describe("words of kept results", () => {
  it("name few orders and count many", () => {
    expect(sayAsked({ trace: "a", policies: ["fcfs", "sjf"], backfills: ["easy"] })).toBe("FCFS, SJF + EASY");
    expect(sayAsked({ trace: "a", policies: ["fcfs", "sjf", "f1"], backfills: [] })).toBe("3 of them + ");
  });
});
