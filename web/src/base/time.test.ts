import { describe, expect, it } from "vitest";
import { DAY_S, HOUR_S, MINUTE_S } from "./durations.ts";
import { formatAgo, formatDuration, formatExact, formatInstant } from "./time.ts";

const plain = (text: string) => text.replaceAll("\u00a0", " ");

describe("formatDuration", () => {
  it.each([
    [0, "0 s"],
    [42.9, "42 s"],
    [4 * MINUTE_S + 20, "4 min 20 s"],
    [11 * MINUTE_S + 59, "11 min"],
    [2 * HOUR_S + 11 * MINUTE_S, "2 h 11 min"],
    [3 * HOUR_S, "3 h"],
    [DAY_S + 4 * HOUR_S, "1 d 4 h"],
    [63 * DAY_S + HOUR_S, "63 d"],
    [-5, "0 s"],
  ])("says %d s as %s", (seconds, text) => expect(plain(formatDuration(seconds))).toBe(text));

  it("says nothing of a missing one", () => expect(formatDuration(null)).toBe("–"));
});

describe("instants", () => {
  const now = Date.UTC(2026, 10, 14, 9, 41, 5);

  it("are formatted relative to now", () => {
    expect(plain(formatAgo(now - 4000, now))).toBe("4 s ago");
    expect(plain(formatAgo(now + 3 * 60_000, now))).toBe("in 3 min");
    expect(formatAgo(now - 200, now)).toBe("now");
    expect(plain(formatAgo(now - 47 * HOUR_S * 1000, now))).toBe("47 h ago");
    expect(plain(formatAgo(now - 5 * DAY_S * 1000, now))).toBe("5 d ago");
  });

  it("are formatted exactly, with the time zone", () => {
    expect(formatInstant(now, now, "UTC")).toBe("14 Nov 09:41");
    expect(formatInstant(now - 400 * DAY_S * 1000, now, "UTC")).toBe("10 Oct 2025 09:41");
    expect(formatExact(now, "UTC")).toBe("14 Nov 2026, 09:41:05 UTC");
  });
});
