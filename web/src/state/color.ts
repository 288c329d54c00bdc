// The colors of the picture in a link: attribute, scheme, scale and limits. All keys start with `color`; a saved view
// stores them under that prefix. Colors are computed by the picture.

import { type AttributeName, findAttribute } from "./attributes.ts";
import { choiceField, type Field } from "./fields.ts";
import { parseRange, type Range, serializeRange } from "./range.ts";

/** Colors of numbers, from dark to light; all rise evenly in lightness, so color-blind readers see them, too. */
export const NUMBER_SCHEMES = ["viridis", "cividis", "mako", "blues", "greys"] as const;
export type NumberScheme = (typeof NUMBER_SCHEMES)[number];

/** Colors of names: `safe` is a short palette for color-blind readers, `many` a long one. */
export const NAME_SCHEMES = ["safe", "many"] as const;
export type NameScheme = (typeof NAME_SCHEMES)[number];

export type Scheme = NumberScheme | NameScheme;

/**
 * Maps a value to a position on the color scale. `quantile`: by rank, so that every color has as many units.
 * `quantize`: in steps of equal width.
 */
export const SCALE_KINDS = ["linear", "log", "quantile", "quantize"] as const;
export type ScaleKind = (typeof SCALE_KINDS)[number];

export interface Scale {
  readonly kind: ScaleKind;
  /** How many steps; only of `quantize`. */
  readonly bins: number;
}

export const FEWEST_BINS = 2;
export const MOST_BINS = 12;
export const DEFAULT_BINS = 5;

export interface ColorSettings {
  /** Null: the default of the attribute. */
  readonly scheme: Scheme | null;
  readonly isReversed: boolean;
  /** Limits of the color scale; null: from the values, or the natural limits of the attribute. */
  readonly min: number | null;
  readonly max: number | null;
  readonly scale: Scale;
  /** Whether the limits come only from units that match the filters. */
  readonly isRemapped: boolean;
}

export const DEFAULT_COLORS: ColorSettings = {
  scheme: null,
  isReversed: false,
  min: null,
  max: null,
  scale: { kind: "linear", bins: DEFAULT_BINS },
  isRemapped: false,
};

/** `color=gpu_util_ratio:p50`. */
export const colorField: Field<AttributeName | null> = {
  key: "color",
  initial: null,
  parse: ([text = ""]) => findAttribute(text)?.name,
  serialize: (color) => (color ? [color] : []),
};

const schemeField: Field<Scheme | null> = {
  key: "color_scheme",
  initial: null,
  parse: ([text]) => [...NUMBER_SCHEMES, ...NAME_SCHEMES].find((name) => name === text),
  serialize: (scheme) => (scheme ? [scheme] : []),
};

const reversedField = choiceField("color_reversed", ["no", "yes"], "no");
const remapField = choiceField("color_remap", ["no", "yes"], "no");

/** `color_scale=log`, `color_scale=quantize-7`. */
const scaleField: Field<Scale> = {
  key: "color_scale",
  initial: DEFAULT_COLORS.scale,
  parse([text = ""]) {
    const [, word, digits] = /^([a-z]+)(?:-(\d{1,2}))?$/.exec(text) ?? [];
    const kind = SCALE_KINDS.find((candidate) => candidate === word);
    if (kind === undefined || (digits !== undefined && kind !== "quantize")) return undefined;
    const bins = Number(digits ?? DEFAULT_BINS);
    return bins >= FEWEST_BINS && bins <= MOST_BINS ? { kind, bins } : undefined;
  },
  serialize: ({ kind, bins }) => {
    if (kind === "linear") return [];
    return [kind === "quantize" && bins !== DEFAULT_BINS ? `${kind}-${bins}` : kind];
  },
};

const domainField: Field<Range> = {
  key: "color_domain",
  initial: { min: null, max: null },
  parse: ([text = ""]) => parseRange(text) ?? undefined,
  serialize: (range) => (range.min === null && range.max === null ? [] : [serializeRange(range)]),
};

export function parseColors(read: <T>(field: Field<T>) => T): ColorSettings {
  return {
    scheme: read(schemeField),
    isReversed: read(reversedField) === "yes",
    ...read(domainField),
    scale: read(scaleField),
    isRemapped: read(remapField) === "yes",
  };
}

export function writeColors(colors: ColorSettings, write: <T>(field: Field<T>, value: T) => void): void {
  write(schemeField, colors.scheme);
  write(reversedField, colors.isReversed ? "yes" : "no");
  write(domainField, { min: colors.min, max: colors.max });
  write(scaleField, colors.scale);
  write(remapField, colors.isRemapped ? "yes" : "no");
}

/** Whether all settings are defaults. */
export function isPlainColors(colors: ColorSettings): boolean {
  const { scheme, isReversed, min, max, scale, isRemapped } = colors;
  return scheme === null && !isReversed && min === null && max === null && scale.kind === "linear" && !isRemapped;
}
