// From units and what to color them by to the marks that are drawn and the legend that explains them. Pure.

import { type NameColumn, nameAt } from "../../../../api/columns.ts";
import type { UnitState } from "../../../../api/snapshot.ts";
import type { Quantity } from "../../../../base/format.ts";
import { rampColor } from "../../../../base/ramp.ts";
import type { Units } from "../../../../data/units.ts";
import { type Marks, type PackedColor, SHAPES } from "../../../../layers/squares/marks.ts";
import type { ColorName } from "../../../../state/screen.ts";
import { toUnitState } from "../../words.ts";
import { parseColor, type Tokens } from "../tokens.ts";
import { type CategoryChoice, COLOR_CHOICES, type QuantityChoice, readQuantity, titleOf } from "./color-choices.ts";
import { nameColor } from "./name-color.ts";

export interface QuantityLegend {
  readonly kind: "quantity";
  readonly unit: Quantity;
  /** The ends of the ramp; both 0 where there are no values. */
  readonly min: number;
  readonly max: number;
  /** Units by value, in equal steps from `min` to `max`. */
  readonly bins: Uint32Array;
  readonly sampled: number;
}

export interface CategoryEntry {
  readonly key: string;
  readonly title: string;
  readonly color: PackedColor;
  readonly count: number;
}

export interface CategoryLegend {
  readonly kind: "category";
  /** Most units first. */
  readonly entries: readonly CategoryEntry[];
}

export type Legend = QuantityLegend | CategoryLegend;

export interface Coloring {
  readonly marks: Marks;
  readonly legend: Legend;
  /** Drawn units of each state. */
  readonly states: Readonly<Record<UnitState, number>>;
}

interface ColoringInput {
  readonly units: Units;
  readonly color: ColorName;
  /** 1 for each row the filters leave out. */
  readonly filtered: Uint8Array | null;
  /** 1 for each row that is in the picture; the legend counts no others. */
  readonly drawn: Uint8Array;
  readonly tokens: Tokens;
}

const BINS = 48;
const RAMP_STEPS = 64;
const RAMP: readonly PackedColor[] = Array.from({ length: RAMP_STEPS + 1 }, (_, step) =>
  parseColor(rampColor(step / RAMP_STEPS)),
);
const FADED = 0.13;
const UNAVAILABLE_OPACITY = 0.8;

/** The color of a row's value; null where it has none. */
type ColorOf = (row: number) => PackedColor | null;

export function computeColoring(input: ColoringInput): Coloring {
  const { units, color, filtered, tokens } = input;
  const choice = COLOR_CHOICES[color];
  const states = readStates(units.snapshot.names("unit_state"));
  const { colorOf, legend } =
    choice.kind === "quantity" ? colorQuantity(input, choice, states) : colorCategory(input, choice);
  return { marks: makeMarks(states, colorOf, filtered, tokens), legend, states: countStates(states, input.drawn) };
}

function readStates({ codes, names }: NameColumn): readonly UnitState[] {
  const byCode = names.map((name) => toUnitState(name));
  return Array.from(codes, (code) => byCode[code] ?? "stale");
}

function makeMarks(states: readonly UnitState[], colorOf: ColorOf, filtered: Uint8Array | null, tokens: Tokens): Marks {
  const marks = {
    color: new Uint32Array(states.length),
    shape: new Uint8Array(states.length),
    opacity: new Float32Array(states.length),
  };
  states.forEach((state, row) => {
    const isFaded = filtered?.[row] === 1;
    const [shape, color, opacity] = markOf(state, colorOf(row), tokens);
    marks.color[row] = color;
    marks.shape[row] = shape;
    marks.opacity[row] = isFaded ? FADED : opacity;
  });
  return marks;
}

function markOf(
  state: UnitState,
  value: PackedColor | null,
  tokens: Tokens,
): readonly [shape: number, color: PackedColor, opacity: number] {
  switch (state) {
    case "allocated":
      return value === null ? [SHAPES.missing, tokens.muted, 1] : [SHAPES.filled, value, 1];
    case "free":
      return [SHAPES.free, value ?? tokens.faint, 1];
    case "unavailable":
      return [SHAPES.filled, tokens.bad, UNAVAILABLE_OPACITY];
    case "stale":
      return [SHAPES.stale, tokens.faint, 1];
    case "requested":
      return value === null ? [SHAPES.requested, tokens.accent, 1] : [SHAPES.requestedValue, value, 1];
  }
}

/** Whether a unit of this state shows a metric: what nobody uses has values, too, but they say nothing. */
function isMeasured(state: UnitState | undefined): boolean {
  return state === "allocated" || state === "requested";
}

function colorQuantity(
  { units, color, filtered, drawn }: ColoringInput,
  choice: QuantityChoice,
  states: readonly UnitState[],
): { readonly colorOf: ColorOf; readonly legend: Legend } {
  const values = readQuantity(units, color);
  const valueAt = (row: number) => (isMeasured(states[row]) ? (values?.[row] ?? Number.NaN) : Number.NaN);
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (let row = 0; row < states.length; row += 1) {
    const value = valueAt(row);
    if (drawn[row] !== 1 || Number.isNaN(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const hasValues = low <= high;
  const min = choice.min ?? (hasValues ? low : 0);
  const max = Math.max(min, choice.max ?? (hasValues ? high : 0));
  const ratioOf = (value: number) => (max > min ? Math.min(1, Math.max(0, (value - min) / (max - min))) : 1);
  const bins = new Uint32Array(BINS);
  let sampled = 0;
  for (let row = 0; row < states.length; row += 1) {
    const value = valueAt(row);
    if (drawn[row] !== 1 || Number.isNaN(value) || filtered?.[row] === 1) continue;
    const bin = Math.min(BINS - 1, Math.floor(ratioOf(value) * BINS));
    bins[bin] = (bins[bin] ?? 0) + 1;
    sampled += 1;
  }
  return {
    colorOf(row) {
      const value = valueAt(row);
      return Number.isNaN(value) ? null : (RAMP[Math.round(ratioOf(value) * RAMP_STEPS)] ?? null);
    },
    legend: { kind: "quantity", unit: choice.unit, min, max, bins, sampled },
  };
}

function colorCategory(
  { units, filtered, drawn, tokens }: ColoringInput,
  choice: CategoryChoice,
): { readonly colorOf: ColorOf; readonly legend: Legend } {
  const column = units.snapshot.names(choice.column);
  const isState = choice.column === "unit_state";
  const colorOfCode = column.names.map((name) => {
    if (name === null) return null;
    return isState ? stateColor(toUnitState(name), tokens) : nameColor(name);
  });
  const counts = new Uint32Array(column.names.length);
  const firstRows = new Uint32Array(column.names.length);
  column.codes.forEach((code, row) => {
    if (drawn[row] !== 1 || filtered?.[row] === 1) return;
    if (counts[code] === 0) firstRows[code] = row;
    counts[code] = (counts[code] ?? 0) + 1;
  });
  const title = titleOf(units, choice);
  const entries = column.names.flatMap((key, code) => {
    const color = colorOfCode[code] ?? null;
    const count = counts[code] ?? 0;
    if (key === null || color === null || count === 0) return [];
    return [{ key, title: title(firstRows[code] ?? 0) ?? key, color, count }];
  });
  entries.sort((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1));
  const colorOf: ColorOf = (row) => {
    if (isState && nameAt(column, row) !== "allocated") return null;
    return colorOfCode[column.codes[row] ?? 0] ?? null;
  };
  return { colorOf, legend: { kind: "category", entries } };
}

function stateColor(state: UnitState, tokens: Tokens): PackedColor {
  if (state === "unavailable") return tokens.bad;
  return state === "allocated" || state === "requested" ? tokens.accent : tokens.faint;
}

function countStates(states: readonly UnitState[], drawn: Uint8Array): Readonly<Record<UnitState, number>> {
  const counts: Record<UnitState, number> = { allocated: 0, free: 0, unavailable: 0, stale: 0, requested: 0 };
  states.forEach((state, row) => {
    if (drawn[row] === 1) counts[state] += 1;
  });
  return counts;
}
