// The values of an attribute for all units, as a column: read from the snapshot or the tick, or computed from them,
// once per snapshot. Defines what an attribute means, not its label.

import { emptyNames, type NameColumn, type NumberColumn } from "../api/columns.ts";
import type { UnitNameColumn, UnitNumberColumn } from "../api/snapshot.ts";
import {
  type Attribute,
  type AttributeName,
  attributeOf,
  type NameAttributeName,
  type NumberAttribute,
} from "../state/attributes.ts";
import { ruleOfAttribute } from "../state/rules.ts";
import { readRule, readWorst } from "./row-rules.ts";
import type { Units } from "./units.ts";

/** States in which metrics are shown: a free GPU also has a utilization of 0, but it is not wasted. */
const MEASURED_STATES: readonly (string | null)[] = ["allocated", "requested"];

const computed = new WeakMap<Units, Map<AttributeName, NumberColumn>>();

export function readNames({ snapshot, rules }: Units, name: NameAttributeName): NameColumn {
  const key = ruleOfAttribute(name);
  if (name === "violations" || key !== null) {
    if (rules?.snapshot !== snapshot) return emptyNames(snapshot.rowCount);
    return key === null ? readWorst(rules) : readRule(rules, key);
  }
  return snapshot.names(name as UnitNameColumn);
}

/** NaN: missing. */
export function readNumbers(units: Units, attribute: NumberAttribute): NumberColumn {
  const cache = computed.get(units) ?? new Map<AttributeName, NumberColumn>();
  computed.set(units, cache);
  const cached = cache.get(attribute.name);
  if (cached !== undefined) return cached;
  const values = computeNumbers(units, attribute);
  cache.set(attribute.name, values);
  return values;
}

export function readAttribute(units: Units, name: AttributeName): NameColumn | NumberColumn {
  const attribute: Attribute = attributeOf(name);
  return attribute.kind === "name" ? readNames(units, attribute.name) : readNumbers(units, attribute);
}

function computeNumbers(units: Units, { name, metric }: NumberAttribute): NumberColumn {
  if (metric !== null) return keepMeasured(units, units.tick?.find(name) ?? null);
  if (name === "wait_s") return computeSpans(units, "submitted_at", "started_at");
  if (name === "run_s") return computeSpans(units, "started_at", null);
  return units.snapshot.numbers(name as UnitNumberColumn);
}

function keepMeasured({ snapshot }: Units, values: Float32Array | null): Float32Array {
  if (values === null) return new Float32Array(snapshot.rowCount).fill(Number.NaN);
  const { codes, names } = snapshot.names("unit_state");
  const isMeasured = Uint8Array.from(names, (name) => (MEASURED_STATES.includes(name) ? 1 : 0));
  const measured = new Float32Array(values);
  for (let row = 0; row < measured.length; row += 1) if (isMeasured[codes[row] ?? 0] === 0) measured[row] = Number.NaN;
  return measured;
}

/** Seconds from one instant to another, or to the newest sample if there is no other yet. */
function computeSpans({ snapshot, tick }: Units, from: UnitNumberColumn, to: UnitNumberColumn | null): Float32Array {
  const starts = snapshot.numbers(from);
  const ends = to === null ? null : snapshot.numbers(to);
  const now = tick?.sampledAt ?? Number.NaN;
  const spans = new Float32Array(snapshot.rowCount);
  for (let row = 0; row < spans.length; row += 1) {
    const end = ends?.[row] ?? Number.NaN;
    const seconds = ((Number.isNaN(end) ? now : end) - (starts[row] ?? Number.NaN)) / 1000;
    spans[row] = Math.max(0, seconds);
  }
  return spans;
}
