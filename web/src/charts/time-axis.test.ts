import { describe, expect, it } from "vitest";
import { listTicks } from "./time-axis.tsx";

describe("an axis of time", () => {
  it("has round local times from seconds to days", () => {
    const start = Date.UTC(2026, 10, 15, 9, 0, 7);
    const texts = (length: number, offset = 0) => listTicks(start, start + length, 4, offset).map(({ text }) => text);
    expect(texts(40_000)).toEqual(["09:00:10", "09:00:20", "09:00:30", "09:00:40"]);
    expect(texts(3_600_000)).toEqual(["09:15", "09:30", "09:45", "10:00"]);
    expect(texts(3_600_000, 1_800_000)).toEqual(["09:45", "10:00", "10:15", "10:30"]);
    expect(texts(86_400_000)).toEqual(["12:00", "18:00", "16 Nov", "06:00"]);
    expect(texts(40 * 86_400_000).length).toBeLessThanOrEqual(4);
  });
});
