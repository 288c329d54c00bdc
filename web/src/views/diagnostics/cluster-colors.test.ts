import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { RuleAnswer } from "../../api/generated.ts";
import { findClosest } from "../../base/color-vision.ts";
import { colorRules } from "../../parts/rules/rule-colors.ts";
import { clusterColor } from "./cluster-colors.ts";

const THEMES = ["light", "dark"] as const;
const CLUSTERS = 7;
const SHADES = 6;

/** `light-dark(#…, #…)` as numbers. */
function parsePair(css: string): Readonly<Record<(typeof THEMES)[number], number>> {
  const [light = "", dark = ""] = css.match(/#[0-9a-f]{6}/g) ?? [];
  return { light: Number.parseInt(light.slice(1), 16), dark: Number.parseInt(dark.slice(1), 16) };
}

/** The color of controls, selections and brushes. */
function readAccent() {
  const theme = readFileSync(new URL("../../app/theme.css", import.meta.url), "utf8");
  return parsePair(/--accent: ([^;]+);/.exec(theme)?.[1] ?? "");
}

describe("colors of clusters, brushes and rules", () => {
  it.each(THEMES)("are distinguishable in the %s theme", (theme) => {
    const usedColors = [...Array.from({ length: CLUSTERS }, (_, at) => parsePair(clusterColor(at))), readAccent()];
    for (const severity of ["critical", "warning", "info"] as const) {
      const rules = Array.from({ length: SHADES }, (_, at) => ({ key: `${at}`, severity, color: null }) as RuleAnswer);
      for (const shade of colorRules(rules).values()) {
        const color = Number.parseInt(shade[theme].slice(1), 16);
        for (const other of usedColors) expect(findClosest([color, other[theme]], "usual")).toBeGreaterThan(0.085);
      }
    }
  });
});
