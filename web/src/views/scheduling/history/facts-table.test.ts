import { describe, expect, it } from "vitest";
import type { TraceDescription } from "../../../api/generated.ts";
import { meanRate } from "./arrival-cards.tsx";
import { FACTS, formatFigure } from "./facts-table.tsx";

const plain = (text: string) => text.replaceAll("\u00a0", " ");
const emptySpread = { count: 0, distribution: null, histogram: null, mean: null, missing: 0, quantiles: null };

/** A trace with as few fields as possible. */
const minimal = {
  jobs: 1,
  dropped: 0,
  size_unit: "gpus",
  total_units: null,
  unit_hours: 1234.5,
  first_submit_s: 0,
  last_submit_s: 3600,
  run_s: emptySpread,
  size_units: emptySpread,
  requested_s: emptySpread,
  arrivals: { busiest_to_quietest_hour: null },
  users: { users: null, largest_user_share: null, repetition: null, run_time_by_status: [], submission: null },
  waiting: null,
  failures: null,
  occupancy: null,
} as unknown as TraceDescription;

function formatFact(label: string, trace: TraceDescription): string | undefined {
  const text = FACTS.find(([name]) => name === label)?.[1](trace);
  return text && plain(text);
}

describe("facts of a trace", () => {
  it("are a dash where the trace does not contain them", () => {
    const texts = FACTS.map(([, format]) => format(minimal));
    expect(texts.join(" ")).not.toMatch(/NaN|undefined|null/);
    for (const label of ["Users", "Machine", "Median wait", "Unsuccessful, of known status", "Utilization"]) {
      expect(formatFact(label, minimal)).toBe("–");
    }
    expect(formatFact("Unit-hours used", minimal)).toBe("1,235");
    expect(formatFact("Time span of submissions", minimal)).toBe("1 h");
  });

  it("show whether the machine size is stated or a guess, and why", () => {
    const occupancy = {
      capacity_units: 63.6,
      capacity_reason: "at most 64 were busy",
    } as TraceDescription["occupancy"];
    expect(formatFact("Machine", { ...minimal, occupancy })).toBe("64 GPUs (a guess: at most 64 were busy)");
    expect(formatFact("Machine", { ...minimal, occupancy, total_units: 128 })).toBe("128 GPUs");
  });

  it("count all that did not complete as unsuccessful", () => {
    const share = (status: string, value: number) => ({ status, share: { value, low: null, high: null } });
    const statuses = [share("completed", 0.7), share("failed", 0.2), share("cancelled", 0.1)];
    const failures = { statuses, unknown_share: 0, lost_unit_hours: 5, lost_share: 0.25 };
    expect(formatFact("Unsuccessful, of known status", { ...minimal, failures } as unknown as TraceDescription)).toBe(
      "30 %",
    );
  });

  it("are rounded to integers from 100 on", () => {
    expect([0.256, 12.5, 99.994, 100.4, null].map((value) => formatFigure(value))).toEqual([
      "0.26",
      "12.5",
      "99.99",
      "100",
      "–",
    ]);
  });
});

describe("rates of submission", () => {
  it("have a mean that includes hours without submissions", () => {
    const rate = (value: number) => ({ value, low: null, high: null });
    expect(meanRate([rate(4), null, rate(2), rate(2)])).toBe(2);
    expect(meanRate([null, null])).toBe(1);
  });
});
