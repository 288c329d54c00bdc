import { describe, expect, it } from "vitest";
import type { RuleAnswer, RuleReading } from "../../../api/generated.ts";
import { isFault, makeDraft, readDuration, readScope, takeReading, toScopeFields, writeDuration } from "./draft.ts";

const SCOPE = {
  users: [],
  projects: ["nlp-*", "vision"],
  partitions: [],
  machine_types: [],
  names: [],
  min_age_ms: 5_400_000,
  min_samples: 20,
  min_gpus: 2,
  quantifier: "share",
  share: 0.125,
};

describe("times", () => {
  it("are read as they are written", () => {
    for (const ms of [0, 1000, 90_000, 600_000, 5_400_000, 9_000_000, 172_800_000]) {
      expect(readDuration(writeDuration(ms))).toBe(ms);
    }
    expect(writeDuration(5_400_000)).toBe("1h30m");
    expect(readDuration(" 1h 30min ")).toBe(5_400_000);
  });

  it("are not guessed", () => {
    for (const text of ["", "10", "soon", "-5m", "5 parsecs"]) expect(readDuration(text)).toBeNull();
  });
});

describe("the scope of a rule", () => {
  it("is the same after it was shown as fields", () => {
    expect(readScope(toScopeFields(SCOPE))).toEqual(SCOPE);
  });

  it("has no share where it blames each GPU", () => {
    expect(readScope({ ...toScopeFields(SCOPE), quantifier: "each" })).toMatchObject({
      quantifier: "each",
      share: null,
    });
  });

  it("says which field is wrong", () => {
    const fields = toScopeFields(SCOPE);
    const wrong = [readScope({ ...fields, min_age_ms: "soon" }), readScope({ ...fields, min_gpus: "" })];
    expect(wrong.map((result) => isFault(result) && result.path)).toEqual(["scope.min_age_ms", "scope.min_gpus"]);
  });
});

describe("a draft", () => {
  const reading = {
    text: "gpu_util p5 < 15%",
    words: [],
    document: { expression: { metric: "gpu_util_ratio" }, scope: SCOPE },
    form: null,
    fault: null,
  } as RuleReading;

  it("keeps what is being typed and rewrites the other forms", () => {
    const typed = { ...makeDraft(null), source: "text" as const, text: "gpu_util  p5<15%" };
    const read = takeReading(typed, reading);
    expect(read.text).toBe("gpu_util  p5<15%");
    expect(read.scope.min_age_ms).toBe("1h30m");
    expect(JSON.parse(read.json)).toEqual({ expression: { metric: "gpu_util_ratio" }, scope: SCOPE });
  });

  it("of a rule that fits no form begins as text", () => {
    const rule = { name: "a", severity: "info", text: "…", form: null, document: {} } as unknown as RuleAnswer;
    expect(makeDraft(rule).source).toBe("text");
  });
});
