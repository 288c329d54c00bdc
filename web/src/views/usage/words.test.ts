import { describe, expect, it } from "vitest";
import type { UsageAnswer, UsageFigures, UsageGroup } from "../../api/generated.ts";
import { describePeriod, formatMoney, idleRatio, nameOf, nameSteps, orderGroups } from "./words.ts";

const group = (fields: Partial<UsageGroup>) =>
  ({ user: null, project: null, gpu_model: null, job_size: null, ...fields }) as UsageGroup;

describe("the words of usage", () => {
  it("names sizes by their GPUs, and orders them by size", () => {
    const groups = ["9-16", "0", "1"].map((job_size) => group({ job_size }));
    const ordered = orderGroups({ by: ["job_size"], groups } as unknown as UsageAnswer);
    expect(ordered.map((one) => nameOf(one, "job_size"))).toEqual(["no GPU", "1 GPU", "9–16 GPUs"]);
  });

  it("says that a name is unknown rather than leaving it empty", () => {
    expect(nameOf(group({}), "user")).toBe("unknown");
  });

  it("gives no idle share where nothing was measured", () => {
    const figures = { gpu_hours: 5, unknown_gpu_hours: 5, idle_gpu_hours: 0, execution_idle_gpu_hours: 0 };
    expect(idleRatio(figures as UsageFigures)).toBeNull();
    expect(idleRatio({ ...figures, unknown_gpu_hours: 1, idle_gpu_hours: 1 } as UsageFigures)).toBe(0.25);
  });

  it("writes days of the period's own time zone", () => {
    const [start, end] = [Date.UTC(2026, 8, 30, 22), Date.UTC(2026, 9, 31, 23)];
    const answer = {
      start,
      end,
      edges: [start, end],
      step: "month",
      timezone: "Europe/Berlin",
    } as unknown as UsageAnswer;
    expect(describePeriod(answer).replaceAll(/\s+–\s+/g, "–")).toBe("1–31 Oct 2026");
    expect(nameSteps(answer)).toEqual(["Oct 26"]);
  });

  it("writes money with its currency", () => {
    expect(formatMoney(1234.5, "EUR")).toBe("1,234.50\u00a0EUR");
    expect(formatMoney(null, "EUR")).toBe("–");
  });
});
