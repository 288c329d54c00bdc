import { describe, expect, it } from "vitest";
import { formatClock, formatPercent, formatSize } from "./words.ts";

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
