import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { INITIAL_SCREEN, parseScreen, serializeScreen } from "./screen.ts";
import { momentField, toMinute, travelTo } from "./time.ts";

const AT = Date.UTC(2026, 10, 15, 8, 41);

describe("a moment in a link", () => {
  it("is written to the minute in UTC", () => {
    expect(serializeScreen(travelTo(AT + 12_345)(INITIAL_SCREEN))).toBe("/?at=2026-11-15T08:41Z");
    expect(serializeScreen(travelTo(null)(travelTo(AT)(INITIAL_SCREEN)))).toBe("/");
  });

  it("is read back, whatever minute it is", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), (ms) => {
        const at = toMinute(ms);
        expect(momentField.parse(momentField.serialize(at))).toBe(at);
      }),
    );
  });

  it.each(["2026-11-15T08:41:59Z", "2026-11-15T10:41+02:00", "2026-11-15T10:41 02:00"])("may be %s", (text) => {
    expect(momentField.parse([text])).toBe(AT);
  });

  it.each(["yesterday", "2026-02-31T00:00Z", "2026-11-15T25:00Z", "2026-11-15T08:41", "", "1799999999"])(
    "is left out with a word where it says %s",
    (text) => {
      const { screen, notices } = parseScreen("/", `?at=${encodeURIComponent(text)}`, ["overview"]);
      expect(screen.at).toBeNull();
      expect(notices.join()).toContain("at=");
    },
  );
});
