import { describe, expect, it } from "vitest";
import type { JitteredMeasure } from "../../../api/generated.ts";
import type { SimulatorChoice } from "../../../state/scheduling.ts";
import { toChoice } from "./saved-results.tsx";
import { toRequest } from "./simulator-tab.tsx";
import { compareMeasures, formatMeasure, nameChoice, parseOmegas } from "./words.ts";

function measured(name: string, mean: number | null, sd = 1): JitteredMeasure {
  return { name, title: name, unit: "s", value: mean, mean, sd, low: mean, high: mean };
}

describe("the simulator", () => {
  it("reports a gain only beyond two standard deviations of the jitter", () => {
    expect(compareMeasures(measured("wait_s", 90), measured("wait_s", 100))).toBe("better");
    expect(compareMeasures(measured("wait_s", 99), measured("wait_s", 100))).toBe("same");
    expect(compareMeasures(measured("wait_s", 99, 0), measured("wait_s", 100, 0))).toBe("better");
    expect(compareMeasures(measured("utilization", 0.9, 0.01), measured("utilization", 0.8, 0.01))).toBe("better");
    expect(compareMeasures(measured("violation_s", null), measured("violation_s", 1))).toBe("unknown");
  });

  it("names choices and measures", () => {
    expect(nameChoice({ policy: "fcfs", backfill: "easy", omega: null })).toBe("FCFS + EASY");
    expect(nameChoice({ policy: "sjf", backfill: "relaxed", omega: 0.05 })).toBe("SJF + relaxed ω\u00a00.05");
    expect(formatMeasure(0.8123, "ratio")).toBe("81.23\u00a0%");
    expect(formatMeasure(null, "s")).toBe("–");
  });

  it("sends no request until everything is selected", () => {
    const choice: SimulatorChoice = {
      trace: "a",
      orders: ["fcfs"],
      fills: ["easy"],
      rules: "pyss",
      estimates: "predicted",
      omegas: ["0.1", "0.05"],
      machine: "128",
      result: "",
    };
    expect(toRequest(choice)).toMatchObject({ trace: "a", processors: 128, semantics: "pyss", omegas: [0.1, 0.05] });
    expect(toRequest({ ...choice, machine: "" })?.processors).toBeNull();
    expect(toRequest({ ...choice, trace: "" })).toBeNull();
    expect(toRequest({ ...choice, orders: [] })).toBeNull();
  });

  it("parses factors and rejects invalid ones", () => {
    expect(parseOmegas("0.05, 0.1 0.1")).toEqual(["0.05", "0.1"]);
    for (const text of ["", "a", "-1", "0.1 x", "11"]) expect(parseOmegas(text)).toBeUndefined();
  });

  it("restores the choice of a saved result", () => {
    const request = { trace: "a", policies: ["sjf"], backfills: ["relaxed"], omegas: [0.05], semantics: "pyss" };
    const choice = toChoice({ simulation: "0a1b2c3d", asked: request });
    expect(toRequest(choice)).toMatchObject(request);
    expect(choice.result).toBe("0a1b2c3d");
  });
});
