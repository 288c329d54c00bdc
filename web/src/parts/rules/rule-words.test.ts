import { describe, expect, it } from "vitest";
import { describeCounts } from "./rule-words.ts";

describe("counts of a rule", () => {
  const counts = { workloads: 2, units: 16, unjudged: 0 };

  it.each([
    ["workloads", "broken by 2 workloads on 16 GPUs"],
    ["gpus", "broken by 16 GPUs of 2 nodes"],
    ["nodes", "broken by 2 nodes with 16 GPUs"],
    ["sources", "broken by 2 sources"],
  ] as const)("name whom it judges: %s", (subject, words) => {
    expect(describeCounts(counts, subject).replaceAll("\u00a0", " ")).toBe(words);
  });

  it("say that no violations, and who is not evaluated yet", () => {
    expect(describeCounts({ workloads: 0, units: 0, unjudged: 3 }, "nodes")).toBe("no violations, 3 not evaluated yet");
    expect(describeCounts(null)).toBe("not evaluated yet");
  });
});
