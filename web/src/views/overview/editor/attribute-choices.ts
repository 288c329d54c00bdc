// The attributes that units can be grouped and sorted by: those for which any unit has a value.

import { formatPlural, type Quantity } from "../../../base/format.ts";
import type { Units } from "../../../data/units.ts";
import { isNames, type NumberValues } from "../../../layout/attributes.ts";
import { ATTRIBUTES, type Attribute } from "../../../state/attributes.ts";
import { formatNumber } from "../filter/number-words.ts";
import { readAttribute } from "../picture/unit-columns.ts";

export interface AttributeChoice {
  readonly attribute: Attribute;
  /** `12 values`, `0 % – 98 %`; nothing where the values come only when they are asked for. */
  readonly hint: string;
}

/** Attributes that no unit has a value of are left out, except those `used`. */
export function listChoices(units: Units, used: readonly string[]): readonly AttributeChoice[] {
  return ATTRIBUTES.flatMap((attribute) => {
    const hint = isHere(units, attribute) ? describeValues(units, attribute) : "";
    return hint === null && !used.includes(attribute.name) ? [] : [{ attribute, hint: hint ?? "no values" }];
  });
}

/** Only the main metrics come with every tick. */
function isHere({ tick }: Units, attribute: Attribute): boolean {
  return attribute.kind === "name" || attribute.metric === null || (tick?.find(attribute.name) ?? null) !== null;
}

function describeValues(units: Units, attribute: Attribute): string | null {
  const values = readAttribute(units, attribute.name);
  if (!isNames(values)) return attribute.kind === "number" ? describeRange(values, attribute.unit) : null;
  const distinct = values.names.filter((name) => name !== null).length;
  return distinct === 0 ? null : formatPlural(distinct, "value");
}

function describeRange(values: NumberValues, unit: Quantity): string | null {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < min) min = value;
    if (value > max) max = value;
  }
  if (min > max) return null;
  return min === max ? formatNumber(min, unit) : `${formatNumber(min, unit)} – ${formatNumber(max, unit)}`;
}

/** Those whose title has all the words, in any order. Statistics are many: they come up when searched for. */
export function searchChoices(choices: readonly AttributeChoice[], text: string): readonly AttributeChoice[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const listed = words.length > 0 ? choices : choices.filter(({ attribute }) => !isStatistic(attribute));
  return listed.filter(({ attribute: { title, name } }) => {
    const searched = `${title} ${name}`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

function isStatistic(attribute: Attribute): boolean {
  return attribute.kind === "number" && attribute.statistic !== null;
}
