import { tableFromArrays, tableToIPC } from "@uwdata/flechette";
import { describe, expect, it } from "vitest";
import { decodeColumns } from "./columns.ts";
import { toHistograms, toScatter } from "./diagnosis-client.ts";

function toColumns(arrays: Record<string, readonly unknown[]>) {
  const bytes = tableToIPC(tableFromArrays(arrays as Record<string, unknown[]>), {});
  return decodeColumns(bytes ?? new Uint8Array(0));
}

describe("points of two metrics", () => {
  const columns = toColumns({
    unit: ["a", "b", "a", "b", "a", "b", "a", "b", "a", "b"],
    time_ms: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    x: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    y: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    is_outlier: [false, false, true, false, false, false, false, false, false, true],
  });

  it("know which of them are outliers", () => {
    const scatter = toScatter(
      columns,
      null,
      new Headers({ "X-Note": '"One metric is constant."', "X-Counts": '{"points":9000,"outliers":2}' }),
    );
    expect([...scatter.isOutlier]).toEqual([0, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
    expect(scatter).toMatchObject({ points: 9000, outliers: 2, note: "One metric is constant.", density: null });
  });

  it("have a density where the server tells one", () => {
    const header = '{"x":[0,1],"y":[2,4],"columns":2}';
    const counts = toColumns({ count: [1, 2, 3, 4] });
    expect(toScatter(columns, counts, new Headers({ "X-Density": header, "X-Note": "null" })).density).toEqual({
      xLow: 0,
      xHigh: 1,
      yLow: 2,
      yHigh: 4,
      columns: 2,
      counts: Float64Array.of(1, 2, 3, 4),
    });
  });
});

describe("histograms", () => {
  it("are bins by unit over one domain", () => {
    const columns = toColumns({ unit: ["a", "b"], b0: [1, 0], b1: [2, 5] });
    const { low, high, bins, counts } = toHistograms(columns, "[0.5, 2]");
    expect([low, high, bins]).toEqual([0.5, 2, 2]);
    expect(counts.get("b")).toEqual(Float64Array.of(0, 5));
  });

  it("of nothing have no domain", () => {
    expect(toHistograms(toColumns({ unit: [] }), "null")).toMatchObject({ low: 0, high: 1, bins: 0 });
  });
});
