// The colors of rules: their own, or by severity, roses for critical, ambers for warnings, blues for hints. Neighbors in one
// severity differ in lightness, so that they can be told apart without seeing hues; the first four of each are tested for it.

import type { RuleAnswer, Severity } from "../../api/generated.ts";

interface Shade {
  readonly light: string;
  readonly dark: string;
}

const shade = (light: string, dark: string): Shade => ({ light, dark });

const SHADES: Readonly<Record<Severity, readonly Shade[]>> = {
  critical: [
    shade("#cf2f4a", "#ff6b81"),
    shade("#f08a9b", "#ffbcc7"),
    shade("#8f1636", "#c93a5e"),
    shade("#c643c4", "#d553d4"),
    shade("#5c1230", "#8a2c48"),
    shade("#e06a4e", "#ff9478"),
  ],
  warning: [
    shade("#b46a00", "#ffb454"),
    shade("#e5a545", "#ffe0b3"),
    shade("#7d4a06", "#c98a2b"),
    shade("#a29809", "#777a00"),
    shade("#4f3208", "#8a6a2e"),
    shade("#d97a2b", "#ff9a3d"),
  ],
  info: [
    shade("#1f6feb", "#5aa9ff"),
    shade("#85b3f2", "#bcdcff"),
    shade("#123f86", "#3f78bd"),
    shade("#732ac5", "#8035ce"),
    shade("#0f7f8a", "#3eaca1"),
    shade("#5b6b80", "#93a4bd"),
  ],
};

/** To choose from: any two differ also for color-blind readers. */
export const OWN_COLORS: readonly { readonly value: string; readonly title: string }[] = [
  { value: "#ff6b81", title: "Rose" },
  { value: "#ffb454", title: "Amber" },
  { value: "#b692ff", title: "Violet" },
  { value: "#3eaca1", title: "Teal" },
  { value: "#5aa9ff", title: "Blue" },
  { value: "#7e5d07", title: "Umber" },
  { value: "#facb39", title: "Yellow" },
  { value: "#9aa4b2", title: "Grey" },
];

/** By key. */
export type RuleColors = ReadonlyMap<string, Shade>;

export function colorRules(rules: readonly RuleAnswer[]): RuleColors {
  const places: Record<Severity, number> = { critical: 0, warning: 0, info: 0 };
  return new Map(
    rules.map(({ key, color, severity }) => {
      if (color !== null) return [key, shade(color, color)];
      const shades = SHADES[severity];
      const place = places[severity] % shades.length;
      places[severity] += 1;
      return [key, shades[place] ?? shade("#9aa4b2", "#9aa4b2")];
    }),
  );
}

export function toCssColor(colors: RuleColors, key: string): string {
  const found = colors.get(key);
  return found ? `light-dark(${found.light}, ${found.dark})` : "var(--muted)";
}
