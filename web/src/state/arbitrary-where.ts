// Arbitrary conditions, for property tests.

import fc from "fast-check";
import { ATTRIBUTES, type NameAttribute } from "./attributes.ts";
import { type Condition, namesCondition, rangeCondition, type Where } from "./where.ts";

const NUMBERS = ATTRIBUTES.filter(({ kind }) => kind === "number");
const NAMES = ATTRIBUTES.filter((attribute): attribute is NameAttribute => attribute.kind === "name");
const FREE = NAMES.filter(({ values }) => values === null);

const finite = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
export const ranges = fc
  .tuple(fc.option(finite), fc.option(finite))
  .filter(([min, max]) => min !== null || max !== null)
  .map(([a, b]) => (a !== null && b !== null && a > b ? { min: b, max: a } : { min: a, max: b }));

const conditions: fc.Arbitrary<Condition> = fc.oneof(
  fc
    .tuple(fc.constantFrom(...NUMBERS), ranges, fc.boolean())
    .map(([{ name }, range, isNegated]) => rangeCondition(name, range, isNegated)),
  fc
    .tuple(
      fc.constantFrom(...FREE),
      fc.array(fc.option(fc.string({ minLength: 1, unit: "grapheme" })), { minLength: 1 }),
      fc.boolean(),
    )
    .map(([{ name }, names, isNegated]) => namesCondition(name, names, isNegated)),
  fc
    .tuple(fc.constantFrom(...NAMES), fc.string({ minLength: 1, unit: "grapheme" }), fc.boolean())
    .map(([{ name }, text, isNegated]): Condition => ({ kind: "text", attribute: name, text, isNegated })),
);

export const wheres: fc.Arbitrary<Where> = fc.array(fc.array(conditions, { minLength: 1, maxLength: 4 }), {
  maxLength: 5,
});
