import { describe, expect, it } from "vitest";
import type { Snapshot } from "../api/snapshot.ts";
import type { Tick } from "../api/tick.ts";
import { joinMetrics, listExtraMetrics } from "./extra-metrics.ts";

const snapshot = { inventoryVersion: 3, rowCount: 2 } as Snapshot;
const makeTick = (inventoryVersion: number, metric: string): Tick => ({
  inventoryVersion,
  tickVersion: 1,
  sampledAt: 0,
  rowCount: 2,
  find: (name) => (name === metric ? Float32Array.of(1, 2) : null),
});
const units = { snapshot, tick: makeTick(3, "power_watts") };

describe("extra metrics", () => {
  it("are those that the page does not have anyway", () => {
    expect(
      listExtraMetrics(["gpu_util_ratio", "user", "sm_clock_hertz", "gpu_util_ratio:p50", "wait_s", "mood"]),
    ).toEqual(["gpu_util_ratio:p50", "sm_clock_hertz"]);
  });

  it("are added to the others", () => {
    const joined = joinMetrics(units, makeTick(3, "gpu_util_ratio:p50"));
    expect(joined?.tick?.find("power_watts")).toBeInstanceOf(Float32Array);
    expect(joined?.tick?.find("gpu_util_ratio:p50")).toBeInstanceOf(Float32Array);
  });

  it("of another inventory are of other units", () => {
    expect(joinMetrics(units, makeTick(2, "gpu_util_ratio:p50"))).toBeNull();
    expect(joinMetrics(units, undefined)).toBeNull();
  });
});
