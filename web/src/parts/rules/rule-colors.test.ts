import { describe, expect, it } from "vitest";
import type { RuleAnswer, Severity } from "../../api/generated.ts";
import { findClosest } from "../../base/color-vision.ts";
import { colorRules } from "./rule-colors.ts";

const rule = (key: string, severity: Severity, color: string | null = null) => ({ key, severity, color }) as RuleAnswer;

describe("colors of rules", () => {
  it("are their own, or a shade of their severity's hue", () => {
    const colors = colorRules([rule("a", "critical"), rule("b", "critical", "#123456"), rule("c", "critical")]);
    expect(colors.get("b")).toEqual({ light: "#123456", dark: "#123456" });
    expect(colors.get("a")).not.toEqual(colors.get("c"));
  });

  it("do not run out", () => {
    const many = Array.from({ length: 30 }, (_, index) => rule(`r${index}`, "warning"));
    expect(new Set([...colorRules(many).values()].map(({ dark }) => dark)).size).toBeGreaterThan(2);
  });

  it("are distinguishable for color-blind readers, the first four of a severity", () => {
    for (const severity of ["critical", "warning", "info"] as const) {
      const four = [...colorRules(Array.from({ length: 4 }, (_, at) => rule(`r${at}`, severity))).values()];
      for (const theme of ["light", "dark"] as const) {
        const colors = four.map((shade) => Number.parseInt(shade[theme].slice(1), 16));
        for (const vision of ["usual", "protanopia", "deuteranopia", "tritanopia"] as const) {
          expect(findClosest(colors, vision)).toBeGreaterThan(0.07);
        }
        expect(findClosest(colors, "achromatopsia")).toBeGreaterThan(0.04);
      }
    }
  });

  it("next to one another in one severity differ in lightness", () => {
    const many = Array.from({ length: 4 }, (_, index) => rule(`r${index}`, "critical"));
    const lightness = [...colorRules(many).values()].map(({ dark }) => luma(dark));
    lightness.slice(1).forEach((value, index) => {
      expect(Math.abs(value - (lightness[index] ?? 0))).toBeGreaterThan(0.1);
    });
  });
});

function luma(hex: string): number {
  const value = Number.parseInt(hex.slice(1), 16);
  return (0.299 * (value >> 16) + 0.587 * ((value >> 8) & 255) + 0.114 * (value & 255)) / 255;
}
