import { describe, expect, it } from "vitest";
import type { JobCardAdvice } from "../../api/generated.ts";
import { describeSaving, formatClock, formatPercent, formatSize } from "./words.ts";

describe("numbers of a card", () => {
  it("are those of jobstats and of the terminal", () => {
    expect([0, 42.9, 4200, 86_400, 420_002].map(formatClock)).toEqual([
      "00:00:00",
      "00:00:42",
      "01:10:00",
      "1-00:00:00",
      "4-20:40:02",
    ]);
    expect([0, 1023, 2 ** 30, 4e9, 4e12].map((size) => formatSize(size))).toEqual([
      "0.0B",
      "1023.0B",
      "1.0GB",
      "3.7GB",
      "3.6TB",
    ]);
    expect(formatSize(2 ** 30, true)).toBe("1GB");
    expect([0, 0.95, 0.98604, 0.9502].map(formatPercent)).toEqual(["0%", "95%", "98.6%", "95.0%"]);
    expect([formatSize(null), formatPercent(null)]).toEqual(["unknown", "unknown"]);
  });
});

describe("advice", () => {
  const piece: JobCardAdvice = {
    kind: "gpus",
    text: "",
    option: "--gpus=1",
    asked: 2,
    enough: 1,
    saved: 1.5,
    saved_unit: "gpu_hours",
    sooner_s: 18_000,
    basis: 3,
  };

  it("says what it saves, how much sooner the job would have started and what it rests on", () => {
    expect(describeSaving(piece)).toEqual([
      "saves 1.5 GPU-hours",
      "would have started 05:00:00 sooner",
      "from 3\u00a0jobs",
    ]);
    expect(describeSaving({ ...piece, sooner_s: 0, basis: 1 })).toEqual(["saves 1.5 GPU-hours", "same start"]);
    expect(describeSaving({ ...piece, saved: null, saved_unit: null, sooner_s: null, basis: 1 })).toEqual([]);
  });
});
