import { expect, it } from "vitest";
import { findMetrics } from "./metrics.ts";

it("finds every metric of a rule once, at any depth", () => {
  const power = { metric: "power_watts", statistic: { kind: "mean" } };
  const document = {
    metric: "not an expression",
    expression: { and: [power, { or: [{ metric: "gpu_util_ratio" }, power] }] },
  };
  expect(findMetrics(document)).toEqual(["power_watts", "gpu_util_ratio"]);
  expect(findMetrics({})).toEqual([]);
});
