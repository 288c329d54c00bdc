// The selection as text for a link: one item by its name, a group by what its units have in common, or any set of units
// as ranges. Pure; views map it to rows.

import { qualifyWorkload } from "../base/workload-id.ts";
import type { Field } from "./fields.ts";

export const SELECTION_KINDS = ["workload", "unit", "node", "group", "units"] as const;
export type SelectionKind = (typeof SELECTION_KINDS)[number];

/** `key`: a name; of a group what `encodeGroup` writes, of units what `encodeUnits` writes. */
export interface Selection {
  readonly kind: SelectionKind;
  readonly key: string;
}

/** Browsers and servers accept links of a few thousand characters; the rest of the screen needs room, too. */
export const LONGEST_UNITS = 1500;
/** An upper bound for the units of a link. */
const MOST_UNITS = 400_000;

export function selectionField(key: string): Field<Selection | null> {
  return {
    key,
    initial: null,
    parse: ([text = ""]) => parseSelection(text),
    serialize(selection) {
      if (selection === null) return [];
      const name = selection.kind === "units" ? shortenUnits(selection.key) : selection.key;
      return [`${selection.kind}:${name}`];
    },
  };
}

function parseSelection(text: string): Selection | undefined {
  const colon = text.indexOf(":");
  const kind = SELECTION_KINDS.find((name) => name === text.slice(0, colon));
  const key = text.slice(colon + 1);
  if (!kind || !key) return undefined;
  if (kind === "units" && decodeUnits(key) === null) return undefined;
  if (kind === "group" && decodeGroup(key) === null) return undefined;
  return { kind, key: kind === "workload" ? qualifyWorkload(key) : key };
}

/** `gpu-017:3`, `gpu-017:3/7`, `slurm:4711#0`: what comes before the last number, and the number. */
const NUMBERED = /^(.*[:#/])(0|[1-9]\d{0,7})$/s;
const SEPARATED = /^(.*[:#/])(\d[\d.-]*)$/s;
/** `gpu-001..128:` stands for `gpu-001:` to `gpu-128:`. */
const RUN = /^(.*?)(\d+)\.\.(\d+)([:#/])$/s;
const BASE_NUMBER = /^(.*?)(\d{1,8})([:#/])$/s;
/** The number of units that did not fit into the link. */
const LEFT_OUT = /^~(\d+)$/;

/** Units by name, in any order: `gpu-001..016:0-7,gpu-020:0-3.6`. Reads back as the same set. */
export function encodeUnits(names: Iterable<string>): string {
  const numbersOf = new Map<string, number[]>();
  const others: string[] = [];
  for (const name of new Set(names)) {
    const [, base, number] = NUMBERED.exec(name) ?? [];
    if (base === undefined) others.push(escapeText(name, /[%,:#/~]|\.\./g));
    else appendTo(numbersOf, escapeText(base, /[%,]|^~|\.\./g), Number(number));
  }
  const parts = [...numbersOf].map(([base, numbers]) => ({
    base,
    ranges: formatRanges(numbers.sort((a, b) => a - b)),
  }));
  parts.sort((a, b) => (a.base < b.base ? -1 : 1));
  return [...joinRuns(parts), ...others.sort()].join(",");
}

/** The names, and how many more did not fit; null: invalid. */
export interface DecodedUnits {
  readonly names: readonly string[];
  readonly leftOut: number;
}

export function decodeUnits(text: string): DecodedUnits | null {
  const names: string[] = [];
  let leftOut = 0;
  for (const part of text.split(",")) {
    const [, more] = LEFT_OUT.exec(part) ?? [];
    if (more !== undefined) leftOut += Number(more);
    else if (part === "" || !expandPart(part, names)) return null;
  }
  return names.length > 0 ? { names, leftOut } : null;
}

/** As many whole parts as fit into a link, and the number of units in the others. */
export function shortenUnits(key: string): string {
  if (key.length <= LONGEST_UNITS) return key;
  const cut = key.lastIndexOf(",", LONGEST_UNITS - 10);
  if (cut < 0) return key;
  const rest = decodeUnits(key.slice(cut + 1));
  return `${key.slice(0, cut)},~${rest === null ? 0 : rest.names.length + rest.leftOut}`;
}

interface Part {
  readonly base: string;
  readonly ranges: string;
}

/** Neighbors in name that have the same numbers become one part. */
function* joinRuns(parts: readonly Part[]): Generator<string> {
  let first = 0;
  for (let next = 1; next <= parts.length; next += 1) {
    const before = parts[next - 1];
    const current = parts[next];
    if (before && current && current.ranges === before.ranges && isNext(before.base, current.base)) continue;
    const start = parts[first];
    if (start && before) yield `${joinBases(start.base, before.base)}${before.ranges}`;
    first = next;
  }
}

function isNext(before: string, after: string): boolean {
  const [, stem, number = "", separator] = BASE_NUMBER.exec(before) ?? [];
  if (stem === undefined) return false;
  const next = String(Number(number) + 1).padStart(number.length, "0");
  return next.length === number.length && after === `${stem}${next}${separator}`;
}

function joinBases(first: string, last: string): string {
  if (first === last) return first;
  const [, stem = "", from = "", separator = ""] = BASE_NUMBER.exec(first) ?? [];
  const [, , to = ""] = BASE_NUMBER.exec(last) ?? [];
  return `${stem}${from}..${to}${separator}`;
}

/** `0-3.6`: the numbers 0, 1, 2, 3 and 6. */
function formatRanges(numbers: readonly number[]): string {
  const ranges: string[] = [];
  let from = 0;
  numbers.forEach((number, index) => {
    if (numbers[index + 1] === number + 1) return;
    const start = numbers[from] ?? number;
    ranges.push(start === number ? `${number}` : `${start}-${number}`);
    from = index + 1;
  });
  return ranges.join(".");
}

function expandPart(part: string, names: string[]): boolean {
  const [, base, ranges] = SEPARATED.exec(part) ?? [];
  if (base === undefined || ranges === undefined) {
    names.push(unescapeText(part));
    return names.length <= MOST_UNITS;
  }
  const numbers = parseRanges(ranges);
  const bases = listBases(base);
  if (numbers === null || bases === null || names.length + numbers.length * bases.length > MOST_UNITS) return false;
  for (const prefix of bases) for (const number of numbers) names.push(`${prefix}${number}`);
  return true;
}

function parseRanges(text: string): readonly number[] | null {
  const numbers: number[] = [];
  for (const range of text.split(".")) {
    const [, from, to = from] = /^(\d{1,8})(?:-(\d{1,8}))?$/.exec(range) ?? [];
    const count = Number(to) - Number(from) + 1;
    if (from === undefined || count < 1 || numbers.length + count > MOST_UNITS) return null;
    for (let number = Number(from); number <= Number(to); number += 1) numbers.push(number);
  }
  return numbers;
}

function listBases(base: string): readonly string[] | null {
  const [, stem = "", from, to, separator] = RUN.exec(base) ?? [];
  if (from === undefined || to === undefined) return [unescapeText(base)];
  const count = Number(to) - Number(from) + 1;
  if (from.length !== to.length || !(count >= 1 && count <= MOST_UNITS)) return null;
  return Array.from({ length: count }, (_, step) => {
    return `${unescapeText(stem)}${String(Number(from) + step).padStart(from.length, "0")}${separator}`;
  });
}

/** Which units a group contains: all, existing ones, or requested ones. */
export type GroupScope = "all" | "gpus" | "requested";
const GROUP_SCOPES: readonly GroupScope[] = ["all", "gpus", "requested"];

/** What all units of a group have in common, outermost first; null: the name is missing. */
export interface GroupPath {
  readonly scope: GroupScope;
  readonly steps: readonly { readonly attribute: string; readonly name: string | null }[];
}

/** `gpus/project=nlp-core/user=user-17`, and `gpus/project` for the units without a project. */
export function encodeGroup({ scope, steps }: GroupPath): string {
  const texts = steps.map(({ attribute, name }) =>
    name === null ? attribute : `${attribute}=${escapeText(name, /[%/]/g)}`,
  );
  return [scope, ...texts].join("/");
}

export function decodeGroup(text: string): GroupPath | null {
  const [first, ...rest] = text.split("/");
  const scope = GROUP_SCOPES.find((candidate) => candidate === first);
  if (scope === undefined || rest.length === 0) return null;
  const steps = rest.map((part) => {
    const [, attribute = "", name] = /^([a-z_]+)(?:=(.*))?$/s.exec(part) ?? [];
    return { attribute, name: name === undefined ? null : unescapeText(name) };
  });
  return steps.every(({ attribute }) => attribute !== "") ? { scope, steps } : null;
}

function escapeText(text: string, special: RegExp): string {
  return text.replace(special, (character) => {
    return Array.from(character, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`).join("");
  });
}

function unescapeText(text: string): string {
  return text.replace(/%([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

function appendTo<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
