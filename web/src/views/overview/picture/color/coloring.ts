// Computes marks and legend from units and the color attribute. Pure column code: it runs with every tick for up to
// 100,000 units.

import type { NameColumn, NumberColumn } from "../../../../api/columns.ts";
import { UNIT_STATES, type UnitState } from "../../../../api/snapshot.ts";
import { readNames, readNumbers } from "../../../../data/unit-attributes.ts";
import type { Units } from "../../../../data/units.ts";
import { type Marks, type PackedColor, SHAPES } from "../../../../layers/squares/marks.ts";
import type { Attribute, NameAttribute, NameAttributeName, NumberAttribute } from "../../../../state/attributes.ts";
import { type ColorSettings, NAME_SCHEMES } from "../../../../state/color.ts";
import { ruleOfAttribute } from "../../../../state/rules.ts";
import { countBins, type Histogram, type RowMasks } from "../../filter/histogram.ts";
import { toUnitState } from "../../words.ts";
import { listRuleColors } from "../rules/rule-tones.ts";
import type { Tokens } from "../tokens.ts";
import { colorNames, NAME_PALETTES, NO_COLOR, ownNameScheme } from "./name-color.ts";
import { computeNumberColors } from "./number-colors.ts";

export interface NumberLegend {
  readonly kind: "number";
  readonly attribute: NumberAttribute;
  readonly values: NumberColumn;
  readonly histogram: Histogram;
  /** The color of each part of the histogram. */
  readonly ramp: readonly PackedColor[];
}

export interface NameLegend {
  readonly kind: "name";
  readonly attribute: NameAttribute;
  readonly column: NameColumn;
  /** What a name is called where it has a better word: a workload by its own name. By code; null: as it is. */
  readonly titles: readonly (string | null)[] | null;
  /** By code; `NO_COLOR` for names that have none. */
  readonly colors: Uint32Array;
  /** Drawn units of each name, and those of them that the filters let through; by code. */
  readonly all: Uint32Array;
  readonly kept: Uint32Array;
  /** Whether there are more names than colors, so that some share one. */
  readonly hasSharedColors: boolean;
}

export type Legend = NumberLegend | NameLegend;

export interface Coloring {
  readonly marks: Marks;
  readonly legend: Legend;
  /** Drawn units of each state. */
  readonly states: Readonly<Record<UnitState, number>>;
  /** How many units are drawn, and how many of them the filters let through. */
  readonly drawn: number;
  readonly matching: number;
}

export interface ColoringInput {
  readonly units: Units;
  readonly attribute: Attribute;
  readonly settings: ColorSettings;
  /** 1 for each row the filters leave out. */
  readonly filtered: Uint8Array | null;
  /** 1 for each row that is in the picture; the legend counts no others. */
  readonly drawn: Uint8Array;
  readonly tokens: Tokens;
}

const FADED = 0.13;
const UNAVAILABLE_OPACITY = 0.8;

export function computeColoring(input: ColoringInput): Coloring {
  const { units, attribute, drawn, filtered } = input;
  const { colors, legend } =
    attribute.kind === "number" ? colorByNumber(input, attribute) : colorByName(input, attribute);
  const states = units.snapshot.names("unit_state");
  const marks = makeMarks(states, colors, filtered, input.tokens);
  const [drawnCount, matching] = countShown(drawn, filtered);
  return { marks, legend, states: countStates(states, drawn), drawn: drawnCount, matching };
}

interface Colored {
  /** By row; `NO_COLOR` where there is no value. */
  readonly colors: Uint32Array;
  readonly legend: Legend;
}

function colorByNumber({ units, settings, filtered, drawn }: ColoringInput, attribute: NumberAttribute): Colored {
  const values = readNumbers(units, attribute);
  const masks: RowMasks = { filtered, drawn };
  const { axis, colors, ramp } = computeNumberColors(values, attribute, settings, masks);
  const histogram = countBins(values, axis, masks);
  return { colors, legend: { kind: "number", attribute, values, histogram, ramp } };
}

function colorByName(input: ColoringInput, attribute: NameAttribute): Colored {
  const { units, settings, filtered, drawn } = input;
  const column = readNames(units, attribute.name);
  const { codes, names } = column;
  const scheme =
    NAME_SCHEMES.find((candidate) => candidate === settings.scheme) ?? ownNameScheme(attribute.name, names);
  const isState = attribute.name === "unit_state";
  const palette = isState
    ? stateColors(names, input.tokens)
    : (ruleColors(input, attribute.name, names) ?? colorNames(names, scheme));
  const all = new Uint32Array(names.length);
  const kept = new Uint32Array(names.length);
  const colors = new Uint32Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) {
    const code = codes[row] ?? 0;
    colors[row] = palette[code] ?? NO_COLOR;
    if (drawn[row] === 0) continue;
    all[code] = (all[code] ?? 0) + 1;
    if (filtered === null || filtered[row] === 0) kept[code] = (kept[code] ?? 0) + 1;
  }
  const titles = attribute.name === "workload" ? nameWorkloads(units, column) : null;
  const hasSharedColors = !isState && names.length - 1 > NAME_PALETTES[scheme].length;
  return { colors, legend: { kind: "name", attribute, column, titles, colors: palette, all, kept, hasSharedColors } };
}

/** Only what is held is colored by its state; the other states have shapes of their own. */
function stateColors(names: readonly (string | null)[], tokens: Tokens): Uint32Array {
  return Uint32Array.from(names, (name) => (name === "allocated" ? tokens.accent : NO_COLOR));
}

/** Broken rules have the colors of the bar; what keeps them all is quiet. Null for other attributes. */
function ruleColors(
  { units: { rules }, tokens }: ColoringInput,
  attribute: NameAttributeName,
  names: readonly (string | null)[],
): Uint32Array | null {
  const key = ruleOfAttribute(attribute);
  if (rules === undefined || (attribute !== "violations" && key === null)) return null;
  const colors = listRuleColors(rules.all, tokens);
  const byName = new Map(rules.all.map((rule) => [rule.name, colors.get(rule.key) ?? tokens.muted]));
  return Uint32Array.from(names, (name) => {
    if (name === null) return NO_COLOR;
    if (key === null) return byName.get(name) ?? tokens.line;
    return name === "broken" ? (colors.get(key) ?? tokens.muted) : tokens.line;
  });
}

function nameWorkloads(units: Units, { codes, names }: NameColumn): readonly (string | null)[] {
  const titles = readNames(units, "workload_name");
  const workloadTitles = new Array<string | null>(names.length).fill(null);
  const isNamed = new Uint8Array(names.length);
  for (let row = 0; row < codes.length; row += 1) {
    const code = codes[row] ?? 0;
    if (isNamed[code] === 1) continue;
    isNamed[code] = 1;
    workloadTitles[code] = titles.names[titles.codes[row] ?? 0] ?? null;
  }
  return workloadTitles;
}

/** What each state looks like: with a value and without one. The order is that of `UNIT_STATES`. */
function makeLooks(tokens: Tokens) {
  const looks: Readonly<Record<UnitState, readonly [shape: number, bare: number, color: PackedColor, takes: 0 | 1]>> = {
    allocated: [SHAPES.filled, SHAPES.missing, tokens.muted, 1],
    free: [SHAPES.free, SHAPES.free, tokens.faint, 1],
    unavailable: [SHAPES.out, SHAPES.out, tokens.bad, 0],
    stale: [SHAPES.stale, SHAPES.stale, tokens.faint, 0],
    requested: [SHAPES.requestedValue, SHAPES.requested, tokens.accent, 1],
  };
  return looks;
}

function makeMarks(
  { codes, names }: NameColumn,
  color: Uint32Array,
  filtered: Uint8Array | null,
  tokens: Tokens,
): Marks {
  const looks = makeLooks(tokens);
  const states = names.map((name) => toUnitState(name));
  const shapes = Uint8Array.from(states, (state) => looks[state][0]);
  const bareShapes = Uint8Array.from(states, (state) => looks[state][1]);
  const bareColors = Uint32Array.from(states, (state) => looks[state][2]);
  const takesValue = Uint8Array.from(states, (state) => looks[state][3]);
  const opacities = Float32Array.from(states, (state) => (state === "unavailable" ? UNAVAILABLE_OPACITY : 1));
  const shape = new Uint8Array(codes.length);
  const opacity = new Float32Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) {
    const code = codes[row] ?? 0;
    const hasValue = takesValue[code] === 1 && color[row] !== NO_COLOR;
    shape[row] = (hasValue ? shapes[code] : bareShapes[code]) ?? 0;
    if (!hasValue) color[row] = bareColors[code] ?? 0;
    opacity[row] = filtered !== null && filtered[row] === 1 ? FADED : (opacities[code] ?? 1);
  }
  return { color, shape, opacity };
}

function countStates({ codes, names }: NameColumn, drawn: Uint8Array): Readonly<Record<UnitState, number>> {
  const byCode = new Uint32Array(names.length);
  for (let row = 0; row < codes.length; row += 1) {
    const code = codes[row] ?? 0;
    byCode[code] = (byCode[code] ?? 0) + (drawn[row] ?? 0);
  }
  const counts = Object.fromEntries(UNIT_STATES.map((state) => [state, 0])) as Record<UnitState, number>;
  names.forEach((name, code) => {
    counts[toUnitState(name)] += byCode[code] ?? 0;
  });
  return counts;
}

function countShown(isDrawn: Uint8Array, filtered: Uint8Array | null): readonly [drawn: number, matching: number] {
  let drawn = 0;
  let faded = 0;
  for (let row = 0; row < isDrawn.length; row += 1) {
    const flag = isDrawn[row] ?? 0;
    drawn += flag;
    if (filtered !== null) faded += flag & (filtered[row] ?? 0);
  }
  return [drawn, drawn - faded];
}

/** What the reader points at in the legend or among the rules: its units stand out, and nothing is filtered for it. */
export type Highlight =
  | { readonly kind: "name"; readonly attribute: NameAttributeName; readonly name: string | null }
  | { readonly kind: "rows"; readonly rows: Uint32Array }
  /** From `min` up to, not including, `max`. */
  | { readonly kind: "range"; readonly attribute: NumberAttribute; readonly min: number; readonly max: number };

export function highlightMarks(units: Units, marks: Marks, lit: Highlight | null): Marks {
  if (lit === null) return marks;
  const opacity = new Float32Array(marks.opacity);
  if (lit.kind === "rows") {
    opacity.fill(FADED);
    for (const row of lit.rows) opacity[row] = marks.opacity[row] ?? 1;
  } else if (lit.kind === "name") {
    const { codes, names } = readNames(units, lit.attribute);
    const litCode = names.indexOf(lit.name);
    for (let row = 0; row < codes.length; row += 1) if (codes[row] !== litCode) opacity[row] = FADED;
  } else {
    const values = readNumbers(units, lit.attribute);
    for (let row = 0; row < values.length; row += 1) {
      const value = values[row] ?? Number.NaN;
      if (!(value >= lit.min && value < lit.max)) opacity[row] = FADED;
    }
  }
  return { ...marks, opacity };
}
