// The color settings in the popup: scheme, direction, limits, steps, and reset.

import type { ReactNode } from "react";
import type { Attribute, NumberAttribute } from "../../../../state/attributes.ts";
import { setColors } from "../../../../state/changes.ts";
import {
  DEFAULT_COLORS,
  FEWEST_BINS,
  isPlainColors,
  MOST_BINS,
  NAME_SCHEMES,
  NUMBER_SCHEMES,
  type Scheme,
} from "../../../../state/color.ts";
import { useChangeScreen, useScreen } from "../../../../state/use-screen.ts";
import { Button } from "../../../../widgets/button.tsx";
import { lowerTitle } from "../../filter/condition-words.ts";
import { NumberInput } from "../../filter/number-input.tsx";
import { toCss } from "../tokens.ts";
import styles from "./color.module.css";
import type { Legend } from "./coloring.ts";
import { NAME_PALETTES, ownNameScheme } from "./name-color.ts";
import { numberScheme } from "./number-colors.ts";
import { makeRamp } from "./schemes.ts";

export function ColorSettingsForm({ color, legend }: { color: Attribute; legend: Legend }) {
  const { colors } = useScreen();
  const change = useChangeScreen();
  return (
    <div className={styles.settings}>
      <h3>Colors of {lowerTitle(color.title)}</h3>
      <Schemes color={color} legend={legend} />
      {color.kind === "number" && legend.kind === "number" && <NumberRows attribute={color} legend={legend} />}
      <Button disabled={isPlainColors(colors)} onClick={() => change(setColors(DEFAULT_COLORS))}>
        Reset colors
      </Button>
    </div>
  );
}

const SCHEME_TITLES: Readonly<Record<Scheme, string>> = {
  viridis: "Viridis",
  cividis: "Cividis",
  mako: "Mako",
  blues: "Blues",
  greys: "Greys",
  safe: "Few, safe for color blindness",
  many: "Many",
};

function Schemes({ color, legend }: { color: Attribute; legend: Legend }) {
  const { colors } = useScreen();
  const change = useChangeScreen();
  const schemes: readonly Scheme[] = color.kind === "number" ? NUMBER_SCHEMES : NAME_SCHEMES;
  const names = legend.kind === "name" ? legend.column.names : [];
  const defaultScheme: Scheme = color.kind === "number" ? "viridis" : ownNameScheme(color.name, names);
  const current = schemes.find((scheme) => scheme === colors.scheme) ?? defaultScheme;
  return (
    <fieldset className={styles.schemes} aria-label="Scheme">
      {schemes.map((scheme) => (
        <label key={scheme} data-on={scheme === current || undefined}>
          <input
            type="radio"
            name="scheme"
            checked={scheme === current}
            onChange={() => change(setColors({ scheme: scheme === defaultScheme ? null : scheme }))}
          />
          <span>{SCHEME_TITLES[scheme]}</span>
          <i style={{ background: previewOf(scheme, colors.isReversed) }} />
        </label>
      ))}
    </fieldset>
  );
}

const PREVIEW_STEPS = 12;

function previewOf(scheme: Scheme, isReversed: boolean): string {
  const isOfNames = scheme === "safe" || scheme === "many";
  const ramp: readonly number[] = isOfNames
    ? NAME_PALETTES[scheme].slice(0, 20)
    : [...makeRamp(numberScheme({ ...DEFAULT_COLORS, scheme }), isReversed, PREVIEW_STEPS)];
  const size = 100 / ramp.length;
  const stops = ramp.map((color, index) =>
    isOfNames ? `${toCss(color)} ${index * size}% ${(index + 1) * size}%` : toCss(color),
  );
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

function NumberRows({
  attribute,
  legend,
}: {
  attribute: NumberAttribute;
  legend: Extract<Legend, { kind: "number" }>;
}) {
  const { colors } = useScreen();
  const change = useChangeScreen();
  const { axis } = legend.histogram;
  const { scale } = colors;
  return (
    <>
      <Row title="reversed">
        <input
          type="checkbox"
          aria-label="Reversed"
          checked={colors.isReversed}
          onChange={(event) => change(setColors({ isReversed: event.target.checked }))}
        />
      </Row>
      <Row title="from">
        <NumberInput
          label="Lower end of the ramp"
          unit={attribute.unit}
          value={colors.min}
          auto={axis.min}
          isValid={(value) => colors.max === null || value <= colors.max}
          onChange={(min) => change(setColors({ min }))}
        />
      </Row>
      <Row title="to">
        <NumberInput
          label="Upper end of the ramp"
          unit={attribute.unit}
          value={colors.max}
          auto={axis.max}
          isValid={(value) => colors.min === null || value >= colors.min}
          onChange={(max) => change(setColors({ max }))}
        />
      </Row>
      {scale.kind === "quantize" && (
        <Row title="steps">
          <input
            type="range"
            aria-label="Steps"
            min={FEWEST_BINS}
            max={MOST_BINS}
            value={scale.bins}
            onChange={(event) =>
              change(setColors({ scale: { ...scale, bins: Number(event.target.value) } }), "replace")
            }
          />
          <output>{scale.bins}</output>
        </Row>
      )}
    </>
  );
}

function Row({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={styles.row}>
      <span>{title}</span>
      {children}
    </div>
  );
}
