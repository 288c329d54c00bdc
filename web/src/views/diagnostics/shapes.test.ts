import { describe, expect, it } from "vitest";
import type { Scatter } from "../../api/diagnosis-client.ts";
import type { DiagnosedUnit } from "../../api/generated.ts";
import type { SeriesLine } from "../../api/series.ts";
import { arrange, isAvailable, shortenUnits } from "./arrange.ts";
import { boundOutliers, compareThen, findBounds, highlightPoints } from "./brushed.ts";
import { findLinkProblems } from "./diagnosis-view.tsx";
import { describeDifferences } from "./differences.ts";
import { describeUnit, findQuantile, scaleBars } from "./distributions.ts";
import { moveFocus } from "./event-strip.tsx";
import { chooseUnits, chooseZoom, findWholeClusters } from "./timeline-shapes.ts";
import { fillGaps, findBand, findDomain, mergeTimes, summarize, toGrid, valueAt } from "./timelines.ts";
import { formatEstimate, formatPValue, formatValue } from "./words.ts";

function unitAt(node: string, index: number, rank: number | null, cluster: number | null = 0): DiagnosedUnit {
  return {
    unit: `${node}:${index}`,
    node,
    index,
    global_rank: rank,
    local_rank: rank === null ? null : index,
    cluster,
    odd_rank: null,
    rules: [],
    held_from: 0,
    held_to: null,
  };
}

describe("an arrangement", () => {
  const units = [unitAt("n10", 0, 3), unitAt("n2", 1, 1, 1), unitAt("n2", 3, 0), unitAt("n10", 1, 2, null)];

  it("by node has a column per GPU index, and nodes in numeric order", () => {
    expect(arrange(units, "node")).toEqual([
      { title: "n2", slots: [null, 1, null, 2] },
      { title: "n10", slots: [0, 3] },
    ]);
  });

  it("of one node has no gaps", () => {
    expect(arrange([unitAt("n", 3, 0), unitAt("n", 6, 1)], "node")).toEqual([{ title: "n", slots: [0, 1] }]);
  });

  it("by rank, local rank and cluster has all GPUs", () => {
    expect(arrange(units, "global_rank")).toEqual([{ title: "", slots: [2, 1, 3, 0] }]);
    expect(arrange(units, "local_rank").map(({ title }) => title)).toEqual([
      "local rank 0",
      "local rank 1",
      "local rank 3",
    ]);
    expect(arrange(units, "cluster")).toEqual([
      { title: "cluster 1", slots: [0, 2] },
      { title: "cluster 2", slots: [1] },
      { title: "not compared", slots: [3] },
    ]);
  });

  it("by rank is not available without ranks", () => {
    expect(isAvailable([unitAt("n", 0, null)], "global_rank")).toBe(false);
    expect(isAvailable([unitAt("n", 0, null)], "node")).toBe(true);
    expect(arrange([], "node")).toEqual([]);
  });
});

describe("a histogram", () => {
  it("has quantiles to within a bin", () => {
    expect(findQuantile([0, 10, 0, 10], 0, 4, 0.5)).toBe(2);
    expect(findQuantile([0, 10, 0, 10], 0, 4, 0.25)).toBe(1.5);
    expect(findQuantile([0, 0], 0, 1, 0.5)).toBeNull();
  });

  it("is scaled by shares on a common axis, and not drawn without samples", () => {
    const counts = new Map([
      ["a", Float64Array.of(50, 50)],
      ["b", Float64Array.of(1, 1)],
      ["c", Float64Array.of(0, 0)],
    ]);
    const histograms = { low: 0, high: 1, bins: 2, counts };
    const bars = scaleBars(histograms);
    expect(bars.get("a")).toEqual(bars.get("b"));
    expect(bars.has("c")).toBe(false);
    expect(describeUnit(histograms, "a")).toMatchObject({ samples: 100, median: 0.5 });
    expect(describeUnit(histograms, "missing").median).toBeNull();
  });
});

function line(values: readonly number[]): SeriesLine {
  const columns = Float64Array.from(values);
  const timesMs = Float64Array.from(values, (_, at) => at * 10);
  return { metric: "m", unit: "u", timesMs, values: columns, minima: columns, maxima: columns };
}

describe("timelines", () => {
  it("are averaged on a grid, and keep gaps", () => {
    expect([...toGrid(line([1, 3, Number.NaN, Number.NaN, 5, 7]), 0, 60, 3)]).toEqual([2, Number.NaN, 6]);
  });

  it("are interpolated over one or two steps, not over longer gaps", () => {
    const gap = Number.NaN;
    expect([...fillGaps(Float64Array.of(gap, 1, gap, gap, 4, gap, gap, gap, 8))]).toEqual([
      ...[gap, 1, 2, 3, 4],
      ...[gap, gap, gap, 8],
    ]);
  });

  it("of many are a median and a range", () => {
    const summary = summarize([line([1, 1]), line([2, 2]), line([9, 9])], 0, 20, 2);
    expect([...summary.median]).toEqual([2, 2]);
    expect([...summary.low]).toEqual([1, 1]);
    expect([...summary.high]).toEqual([9, 9]);
  });

  it("are read at the nearest time", () => {
    const { timesMs, values } = line([1, 2, 3]);
    expect(valueAt(timesMs, values, 12, 10)).toBe(2);
    expect(valueAt(timesMs, values, 16, 10)).toBe(3);
    expect(valueAt(timesMs, values, 100, 10)).toBeNull();
  });

  it("share a domain with room for 0", () => {
    expect(findDomain([line([0.2, 0.4])], "ratio")).toEqual([0, 1]);
    expect(findDomain([line([100, 400])], "watts")).toEqual([0, 400]);
    expect(findDomain([line([35, 36])], "celsius")).toEqual([35, 36]);
    expect(findDomain([], "watts")).toEqual([0, 1]);
  });

  it("join times into spans", () => {
    expect(mergeTimes([0, 60_000, 600_000, 0], 1000)).toEqual([
      { fromMs: 0, toMs: 60_000 },
      { fromMs: 600_000, toMs: 600_000 },
    ]);
  });
});

describe("a zoom", () => {
  it("covers all brushed times, or the longest where they are spread", () => {
    const spans = [
      { fromMs: 0, toMs: 100_000 },
      { fromMs: 900_000, toMs: 910_000 },
    ];
    expect(chooseZoom(spans, 10_000_000).range).toEqual({ fromMs: -60_000, toMs: 970_000 });
    expect(chooseZoom(spans, 1_000_000)).toEqual({
      range: { fromMs: -100_000, toMs: 200_000 },
      title: "Zoom to the longest",
    });
  });
});

describe("the requested lines", () => {
  it("are all of few, the selected ones, or some of each cluster", () => {
    const units = Array.from({ length: 200 }, (_, at) => unitAt(`n${at >> 3}`, at & 7, at, at % 8 === 0 ? 1 : 0));
    const clusters = [0, 1].map((label) => ({
      label,
      size: 1,
      explanation: null,
      units: units.filter(({ cluster }) => cluster === label).map(({ unit }) => unit),
    }));
    expect(chooseUnits({ units: units.slice(0, 64), clusters }, ["n0:0"])).toEqual([]);
    expect(chooseUnits({ units, clusters }, ["n0:0"])).toEqual(["n0:0"]);
    expect(chooseUnits({ units, clusters }, [])).toEqual([]);
    const [first] = clusters;
    expect(findWholeClusters(clusters, first?.units ?? [])).toEqual([0]);
    expect(chooseUnits({ units, clusters }, first?.units ?? [])).toEqual([]);
    const part = first?.units.slice(1) ?? [];
    expect(findWholeClusters(clusters, part)).toBeNull();
    expect(chooseUnits({ units, clusters }, part).length).toBeLessThanOrEqual(64);
  });

  it("are named by node where all of its GPUs are selected", () => {
    const units = [unitAt("a", 0, 0), unitAt("a", 1, 1), unitAt("b", 0, 2), unitAt("b", 1, 3)];
    expect(shortenUnits(["a:0", "a:1", "b:1"], units)).toEqual(["a:*", "b:1"]);
    expect(shortenUnits([], units)).toEqual([]);
  });

  it("are a band from the server's quantiles of a cluster", () => {
    const line = (unit: string, times: readonly number[], values: readonly number[]) => {
      const numbers = Float64Array.from(values);
      return {
        metric: "m",
        unit,
        timesMs: Float64Array.from(times),
        values: numbers,
        minima: numbers,
        maxima: numbers,
      };
    };
    const lines = [
      line("c0:median", [0, 10], [1, 3]),
      line("c0:p5", [0, 5, 10], [0, 1, 0]),
      line("c0:p95", [0, 10], [4, 4]),
    ];
    expect(findBand(lines, 0)?.median).toEqual(Float64Array.of(1, 2, 3));
    expect(findBand(lines, 0)?.low).toEqual(Float64Array.of(0, 1, 0));
    expect(findBand(lines, 1)).toBeNull();
  });
});

describe("a brush", () => {
  const scatter: Scatter = {
    unit: { codes: Uint32Array.of(1, 2, 2), names: [null, "a", "b"] },
    timesMs: Float64Array.of(1, 2, 3),
    x: Float64Array.of(0, 5, 9),
    y: Float64Array.of(0, 5, 9),
    distance: Float64Array.of(0, 1, 9),
    isOutlier: Uint8Array.of(0, 0, 1),
    density: null,
    note: null,
    points: 3,
    outliers: 1,
  };

  it("highlights points within it and within the time range", () => {
    const lit = highlightPoints(scatter, { xFrom: 4, xTo: 10, yFrom: 4, yTo: 10 }, null);
    expect(lit).toMatchObject({ points: 2, outliers: 1, timesMs: [2, 3], units: ["b"] });
    expect(highlightPoints(scatter, null, { fromMs: 0, toMs: 1 }).units).toEqual(["a"]);
    expect(highlightPoints(scatter, null, null).mask).toBeNull();
  });

  it("can surround all outliers", () => {
    const brush = boundOutliers(scatter);
    expect(brush && highlightPoints(scatter, brush, null)).toMatchObject({ points: 1, outliers: 1 });
    expect(boundOutliers({ ...scatter, isOutlier: new Uint8Array(3) })).toBeNull();
  });

  it("has a margin around all points", () => {
    expect(findBounds(scatter)?.xFrom).toBeLessThan(0);
    expect(findBounds({ ...scatter, x: new Float64Array(0) })).toBeNull();
  });
});

describe("a link", () => {
  it("may name what the workload does not have, which is reported", () => {
    const answer = {
      workload: "slurm:7",
      units: [unitAt("n", 0, 0)],
      metrics: [{ name: "power_watts", label: "Power", unit: "watts" as const, has_samples: true }],
    };
    expect(findLinkProblems(answer, { x: null, y: "power_watts", lines: [], units: ["n:0"] })).toEqual([]);
    const notices = findLinkProblems(answer, { x: "cats", y: null, lines: ["dogs"], units: ["n:9"] });
    expect(notices.join(" ")).toMatch(/cats.*dogs.*n:9/);
  });
});

describe("two diagnoses", () => {
  const cluster = (label: number, units: readonly string[]) => ({
    label,
    size: units.length,
    explanation: null,
    units: [...units],
  });
  const first = {
    gpus: 4,
    gpu_hours: 10,
    wasted_gpu_hours: 1,
    energy_joules: 1000,
    clusters: [cluster(0, ["a", "b"]), cluster(1, ["c", "d"])],
    findings: [],
    odd: [],
    metric: "power_watts",
    units: [],
    notes: [],
  };

  it("are described as alike where they are", () => {
    expect(describeDifferences(first, { ...first, energy_joules: 1010 })).toEqual([
      "Both have the same clusters and findings, and waste and energy are alike.",
    ]);
  });

  it("differ in clusters, waste and energy", () => {
    const second = {
      ...first,
      wasted_gpu_hours: 4,
      energy_joules: 1300,
      clusters: [cluster(0, ["a", "b", "c"]), cluster(1, ["d"])],
    };
    expect(describeDifferences(first, second)).toEqual([
      "1\u00a0GPU changed cluster.",
      "The wasted share of its GPU-hours rises from 10\u00a0% to 40\u00a0%.",
      "The energy per GPU-hour is 30\u00a0% higher in the second.",
    ]);
    const notes = [
      "The first sample is 4.0 h after the start of this window: earlier samples were not collected, or are no longer stored.",
    ];
    expect(describeDifferences({ ...first, notes }, second).join(" ")).not.toContain("energy");
    expect(describeDifferences(first, { ...first, clusters: [cluster(0, ["x"])] })[0]).toBe(
      "The first has 2\u00a0clusters (2 + 2), the second 1 (1).",
    );
  });
});

describe("events", () => {
  it("are reached by arrow keys", () => {
    expect(moveFocus("ArrowRight", 0, 3)).toBe(1);
    expect(moveFocus("ArrowRight", 2, 3)).toBe(2);
    expect(moveFocus("End", 0, 3)).toBe(2);
    expect(moveFocus("Enter", 0, 3)).toBeNull();
    expect(moveFocus("ArrowRight", 0, 0)).toBeNull();
  });
});

describe("values", () => {
  it("are formatted with units and intervals", () => {
    expect(formatValue(0.27, "ratio")).toBe("27\u00a0%");
    expect(formatValue(3.1251, "steps_per_hour")).toBe("3.13\u00a0steps per hour");
    expect(formatValue(null, "watts")).toBe("–");
    expect(formatEstimate({ value: 10, low: 9, high: 12, unit: "seconds" })).toBe("10\u00a0s (9.0\u00a0s – 12\u00a0s)");
    expect(formatPValue(0.00001)).toBe("p < 0.001");
  });
});

describe("the clusters at the times of brushed points", () => {
  const scatter: Scatter = {
    unit: { codes: Uint32Array.from([0, 0, 0, 0, 1, 1, 2]), names: ["a", "b", "c"] },
    timesMs: Float64Array.from([0, 60, 120, 120, 120, 180, 120]),
    x: Float64Array.from([0.9, 0.9, 0, 0.5, 0.8, 0.1, 0.3]),
    y: Float64Array.from([9, 9, 1, 5, 8, 1, 3]),
    distance: new Float64Array(7),
    isOutlier: Uint8Array.from([0, 0, 1, 0, 0, 0, 0]),
    density: null,
    note: null,
    points: 6001,
    outliers: 1,
  };
  const clusters = [
    { label: 0, units: ["a"] },
    { label: 1, units: ["b", "z"] },
  ];

  it("are compared at exactly these times, sampled points counting for those that were not sent", () => {
    expect(compareThen(scatter, [120], clusters)).toEqual([
      { label: 0, gpus: 1, x: 0.5, y: 5 },
      { label: 1, gpus: 2, x: 0.8, y: 8 },
    ]);
  });

  it("are left out without points then", () => {
    expect(compareThen(scatter, [60], clusters).map(({ label }) => label)).toEqual([0]);
  });
});
