// The colors of rules: their own, or by severity: reds for critical, oranges for warnings, greens for hints. They
// differ from the colors of clusters, brushes and buttons. Neighbors of one severity differ in lightness, so that they
// are distinguishable without hue; the first four of each severity are tested for it.

import type { RuleAnswer, Severity } from "../../api/generated.ts";

interface Shade {
  readonly light: string;
  readonly dark: string;
}

const shade = (light: string, dark: string): Shade => ({ light, dark });

const SHADES: Readonly<Record<Severity, readonly Shade[]>> = {
  critical: [
    shade("#db2f17", "#ff5a44"),
    shade("#fd7f6b", "#ffc9c2"),
    shade("#7f1807", "#b3262e"),
    shade("#9b4954", "#df908a"),
    shade("#ef5f4e", "#6f4b45"),
    shade("#bc3650", "#a52051"),
  ],
  warning: [
    shade("#e36f2d", "#ee741a"),
    shade("#8d481a", "#ddbfab"),
    shade("#eaa77a", "#a9501f"),
    shade("#5c300a", "#c9a178"),
    shade("#b47e6f", "#7d4526"),
    shade("#c98a5a", "#93694a"),
  ],
  info: [
    shade("#489e15", "#8fd06a"),
    shade("#1f5c14", "#d3e3c0"),
    shade("#93c95f", "#4e903d"),
    shade("#787d68", "#97af7d"),
    shade("#3e4a2c", "#6fa86a"),
    shade("#7ca06c", "#5d7350"),
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
  const color = colors.get(key);
  return color ? `light-dark(${color.light}, ${color.dark})` : "var(--muted)";
}
