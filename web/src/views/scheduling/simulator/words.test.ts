import { describe, expect, it } from "vitest";
import type { JitteredMeasure } from "../../../api/generated.ts";
import { toAsk } from "./simulator-tab.tsx";
import { compareMeasures, nameChoice, sayMeasure } from "./words.ts";

function measured(name: string, mean: number | null, sd = 1): JitteredMeasure {
  return { name, title: name, unit: "s", value: mean, mean, sd, low: mean, high: mean };
}

describe("words of the simulator", () => {
  it("says a gain only beyond twice the jitter", () => {
    expect(compareMeasures(measured("wait_s", 90), measured("wait_s", 100))).toBe("better");
    expect(compareMeasures(measured("wait_s", 99), measured("wait_s", 100))).toBe("same");
    expect(compareMeasures(measured("wait_s", 99, 0), measured("wait_s", 100, 0))).toBe("better");
    expect(compareMeasures(measured("utilization", 0.9, 0.01), measured("utilization", 0.8, 0.01))).toBe("better");
    expect(compareMeasures(measured("violation_s", null), measured("violation_s", 1))).toBe("unknown");
  });

  it("names choices and measures", () => {
    expect(nameChoice({ policy: "fcfs", backfill: "easy" })).toBe("FCFS + EASY");
    expect(sayMeasure(0.8123, "ratio")).toBe("81.2\u00a0%");
    expect(sayMeasure(null, "s")).toBe("–");
  });

  it("asks nothing until everything is chosen", () => {
    const choice = { trace: "a", orders: ["fcfs"], fills: ["easy"], rules: "pyss", machine: "128" } as const;
    expect(toAsk(choice)).toMatchObject({ trace: "a", processors: 128, semantics: "pyss" });
    expect(toAsk({ ...choice, machine: "" })?.processors).toBeNull();
    expect(toAsk({ ...choice, trace: "" })).toBeNull();
    expect(toAsk({ ...choice, orders: [] })).toBeNull();
  });
});
