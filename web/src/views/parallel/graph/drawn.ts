// A Marey graph as what the layer draws: colors by what the reader asked for, waiting apart from working, one number for all
// spans that bands join. Pure.

import type { Marey, MareyBands, MareySpans } from "../../../api/marey.ts";
import { type BandMarks, type PackedColor, SPAN_STYLES, type SpanMarks, TIERS } from "../../../layers/marey/marks.ts";
import type { SpanColor } from "../../../state/parallel.ts";
import { kindsOf, type SpanKind } from "./kinds.ts";

export interface DrawnLook {
  readonly by: SpanColor;
  /** Spans whose name holds it stand out; empty: all are alike. */
  readonly text: string;
  readonly colorOf: (kind: SpanKind) => PackedColor;
  /** Of a share 0–1. */
  readonly rampOf: (share: number) => PackedColor;
  /** Spans of other steps are dimmed; null: none are. */
  readonly step: number | null;
}

export interface Drawn {
  readonly marey: Marey;
  /** Times of the marks are relative to it. */
  readonly baseNs: number;
  readonly spans: SpanMarks;
  readonly bands: BandMarks;
  readonly kinds: readonly SpanKind[];
  /** By span, not by mark. */
  readonly instance: Float32Array;
  /** By span. */
  readonly colors: Uint32Array;
  /** By span: codes of `TIERS`. */
  readonly tiers: Uint8Array;
  /** How many spans the search found; null: nothing is searched. */
  readonly found: number | null;
}

/** Of a span the search did not find. */
const UNFOUND = 0.14;
const WAIT_OPACITY = 0.62;
/** Of a span of another step than the one looked at. */
const ELSEWHERE = 0.35;
const BAND_OPACITY = 0.3;
/** Of bands between what devices do below phases, and of messages: there are many, and the phases say the same. */
const QUIET_BAND_OPACITY = 0.13;
/** A waiting part is drawn apart where it is at least this share of its span. */
const LEAST_WAIT = 0.02;

export function drawMarey(marey: Marey, baseNs: number, look: DrawnLook): Drawn {
  const { spans } = marey;
  const kinds = kindsOf(spans.class, spans.phase, spans.count);
  const instance = joinInstances(marey);
  const isFound = searchNames(spans, look.text);
  const steps = look.step === null ? null : spans.step;
  const opacity = (span: number) => {
    const ofStep = steps?.[span] ?? Number.NaN;
    const isElsewhere = !Number.isNaN(ofStep) && ofStep !== look.step;
    return (isFound === null || isFound[span] === 1 ? 1 : UNFOUND) * (isElsewhere ? ELSEWHERE : 1);
  };
  const tiers = findTiers(marey);
  const colors = colorSpans(spans, kinds, look);
  return {
    marey,
    baseNs,
    spans: drawSpans(marey, baseNs, { kinds, instance, tiers, opacity, colors, look }),
    bands: drawBands(marey, baseNs, { instance, tiers, opacity, colors }),
    kinds,
    instance,
    colors,
    tiers,
    found: isFound?.reduce((sum, one) => sum + one, 0) ?? null,
  };
}

/** Spans that bands join, over however many rows, have one number: that of their first span. */
function joinInstances({ spans, bands }: Marey): Float32Array {
  const parent = new Uint32Array(spans.count);
  for (let span = 0; span < spans.count; span += 1) parent[span] = span;
  const rootOf = (span: number): number => {
    let root = span;
    while (parent[root] !== root) root = parent[root] ?? root;
    parent[span] = root;
    return root;
  };
  for (let band = 0; band < bands.count; band += 1) {
    const from = rootOf(bands.fromSpan[band] ?? 0);
    const to = rootOf(bands.toSpan[band] ?? 0);
    parent[Math.max(from, to)] = Math.min(from, to);
  }
  const instance = new Float32Array(spans.count);
  for (let span = 0; span < spans.count; span += 1) instance[span] = rootOf(span);
  return instance;
}

/** One per span: whether it was found; null where nothing is searched. Names are compared once each, not once per span. */
function searchNames({ name, namespace, count }: MareySpans, text: string): Uint8Array | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const hits = (names: readonly (string | null)[]) =>
    names.map((each) => each !== null && words.every((word) => each.toLowerCase().includes(word)));
  const [byName, bySpace] = [hits(name.names), hits(namespace.names)];
  const found = new Uint8Array(count);
  for (let span = 0; span < count; span += 1) {
    found[span] = byName[name.codes[span] ?? 0] || bySpace[namespace.codes[span] ?? 0] ? 1 : 0;
  }
  return found;
}

function colorSpans(spans: MareySpans, kinds: readonly SpanKind[], { by, colorOf, rampOf }: DrawnLook): Uint32Array {
  const known = new Map<SpanKind, PackedColor>();
  const ofKind = (kind: SpanKind) => {
    let color = known.get(kind);
    if (color === undefined) {
      color = colorOf(kind);
      known.set(kind, color);
    }
    return color;
  };
  const most = by === "slack" ? largest(spans.slackNs) : 1;
  const share = (span: number): number => {
    if (by === "critical") return spans.critical[span] ?? Number.NaN;
    if (by === "slack") return 1 - (spans.slackNs[span] ?? Number.NaN) / most;
    const length = (spans.endNs[span] ?? 0) - (spans.startNs[span] ?? 0);
    return (spans.waitNs[span] ?? Number.NaN) / Math.max(1, length);
  };
  const colors = new Uint32Array(spans.count);
  for (let span = 0; span < spans.count; span += 1) {
    const value = by === "class" ? 0 : share(span);
    if (by === "class") colors[span] = ofKind(kinds[span] ?? "host");
    else colors[span] = Number.isNaN(value) ? ofKind("launch") : rampOf(value);
  }
  return colors;
}

function largest(values: Float64Array): number {
  let most = 1;
  for (const value of values) if (value > most) most = value;
  return most;
}

interface Parts {
  readonly kinds: readonly SpanKind[];
  readonly instance: Float32Array;
  readonly tiers: Uint8Array;
  readonly opacity: (span: number) => number;
  readonly colors: Uint32Array;
  readonly look: DrawnLook;
}

function drawSpans(
  { spans }: Marey,
  baseNs: number,
  { kinds, instance, tiers, opacity, colors, look }: Parts,
): SpanMarks {
  const marks = startMarks(spans.count * 2);
  const waitColor = look.colorOf("waiting");
  const { startNs, endNs, members } = spans;
  for (let span = 0; span < spans.count; span += 1) {
    const start = startNs[span] ?? 0;
    const end = endNs[span] ?? 0;
    const wait = waitOf(spans, span);
    const isWaiting = wait > LEAST_WAIT * (end - start);
    const color = colors[span] ?? 0;
    const seen = opacity(span);
    if (isWaiting) {
      const at = addMark(marks, spans, span, start - baseNs, start + wait - baseNs, instance, tiers);
      marks.style[at] = SPAN_STYLES.thin;
      marks.color[at] = look.by === "class" ? waitColor : color;
      marks.opacity[at] = WAIT_OPACITY * seen;
      if (start + wait >= end) continue;
    }
    const at = addMark(marks, spans, span, (isWaiting ? start + wait : start) - baseNs, end - baseNs, instance, tiers);
    const isMerged = (members[span] ?? 1) > 1;
    if (isMerged) marks.softNs[at] = Math.max(0, (spans.maxNs[span] ?? 0) - (spans.medianNs[span] ?? 0));
    marks.style[at] = styleOf(kinds[span] ?? "host", isMerged);
    marks.color[at] = color;
    marks.opacity[at] = seen;
  }
  return marks;
}

/** Its place among the marks. */
function addMark(
  marks: ReturnType<typeof startMarks>,
  spans: MareySpans,
  span: number,
  startNs: number,
  endNs: number,
  instance: Float32Array,
  tiers: Uint8Array,
): number {
  const at = marks.count;
  marks.count += 1;
  marks.startNs[at] = startNs;
  marks.endNs[at] = endNs;
  marks.row[at] = spans.row[span] ?? 0;
  marks.tier[at] = tiers[span] ?? 0;
  marks.instance[at] = instance[span] ?? 0;
  return at;
}

/** How long a span waits before it works; of merged ones, which may overlap, the share of all their time. */
export function waitOf(spans: MareySpans, span: number): number {
  const wait = spans.waitNs[span] || 0;
  const length = (spans.endNs[span] ?? 0) - (spans.startNs[span] ?? 0);
  const total = spans.totalNs[span] ?? Number.NaN;
  const isMerged = (spans.members[span] ?? 1) > 1 && total > 0;
  return Math.min(length, isMerged ? (wait / total) * length : wait);
}

function styleOf(kind: SpanKind, isMerged: boolean): number {
  if (isMerged) return SPAN_STYLES.merged;
  return kind === "annotation" ? SPAN_STYLES.outline : SPAN_STYLES.block;
}

function startMarks(slots: number) {
  return {
    count: 0,
    startNs: new Float32Array(slots),
    endNs: new Float32Array(slots),
    row: new Uint16Array(slots),
    softNs: new Float32Array(slots),
    color: new Uint32Array(slots),
    style: new Uint8Array(slots),
    tier: new Uint8Array(slots),
    opacity: new Float32Array(slots),
    instance: new Float32Array(slots),
  };
}

/** From this share of its time on that a row communicates during phases, communication has a place of its own. */
const OVERLAPPED = 0.25;

/** On rows where phases are announced, what devices do lies below them; elsewhere spans have their lane to themselves. */
function findTiers({ spans, rows }: Marey): Uint8Array {
  const phase = spans.class.names.indexOf("phase");
  const talk = spans.class.names.indexOf("communication");
  const tiers = new Uint8Array(spans.count);
  if (phase < 0) return tiers;
  const overlap = findOverlaps(spans, rows.length, phase, talk);
  for (let span = 0; span < spans.count; span += 1) {
    const share = overlap[spans.row[span] ?? 0] ?? Number.NaN;
    if (Number.isNaN(share)) continue;
    const code = spans.class.codes[span];
    const isApart = share > OVERLAPPED;
    if (code === phase) tiers[span] = isApart ? TIERS.top : TIERS.upper;
    else if (code === talk) tiers[span] = isApart ? TIERS.middle : TIERS.upper;
    else tiers[span] = TIERS.lower;
  }
  return tiers;
}

/** By row: which share of the time of communication lies in phases; NaN where none are announced. Spans come by start. */
function findOverlaps(spans: MareySpans, rowCount: number, phase: number, talk: number): Float64Array {
  const [until, talked, inside] = [0, 0, 0].map(() => new Float64Array(rowCount)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  until.fill(Number.NaN);
  for (let span = 0; span < spans.count; span += 1) {
    const row = spans.row[span] ?? 0;
    const [start, end] = [spans.startNs[span] ?? 0, spans.endNs[span] ?? 0];
    const held = until[row] ?? Number.NaN;
    if (spans.class.codes[span] === phase) until[row] = Number.isNaN(held) ? end : Math.max(held, end);
    if (spans.class.codes[span] !== talk) continue;
    talked[row] = (talked[row] ?? 0) + end - start;
    if (held > start) inside[row] = (inside[row] ?? 0) + Math.min(end, held) - start;
  }
  return until.map((held, row) => (Number.isNaN(held) ? held : (inside[row] ?? 0) / Math.max(1, talked[row] ?? 0)));
}

function drawBands(
  { spans, bands }: Marey,
  baseNs: number,
  { instance, tiers, opacity, colors }: Pick<Parts, "instance" | "tiers" | "opacity" | "colors">,
): BandMarks {
  const message = bands.kind.names.indexOf("message");
  const marks = startBands(bands.count);
  // Loops and not `from`: typed arrays are filled by iterators several times more slowly, and there may be tens of thousands.
  for (let band = 0; band < bands.count; band += 1) {
    const [from, to] = [bands.fromSpan[band] ?? 0, bands.toSpan[band] ?? 0];
    const isMessage = message >= 0 && bands.kind.codes[band] === message;
    const isQuiet = isMessage || tiers[from] === TIERS.lower;
    marks.fromStartNs[band] = (bands.fromStartNs[band] ?? 0) - baseNs;
    marks.fromEndNs[band] = (bands.fromEndNs[band] ?? 0) - baseNs;
    marks.toStartNs[band] = (isMessage ? arrivalOf(spans, bands, band) : (bands.toStartNs[band] ?? 0)) - baseNs;
    marks.toEndNs[band] = (bands.toEndNs[band] ?? 0) - baseNs;
    marks.fromRow[band] = spans.row[from] ?? 0;
    marks.toRow[band] = spans.row[to] ?? 0;
    marks.color[band] = colors[to] ?? 0;
    marks.opacity[band] = (isQuiet ? QUIET_BAND_OPACITY : BAND_OPACITY) * Math.min(opacity(from), opacity(to));
    marks.instance[band] = instance[from] ?? 0;
  }
  return marks;
}

/** A message is on its way from its send to the part of the receive that does not wait. */
function arrivalOf(spans: MareySpans, bands: MareyBands, band: number): number {
  const to = bands.toSpan[band] ?? 0;
  const start = bands.toStartNs[band] ?? 0;
  if ((spans.members[to] ?? 1) > 1) return start;
  return Math.max(start, (spans.startNs[to] ?? 0) + (spans.waitNs[to] || 0));
}

function startBands(count: number) {
  return {
    count,
    fromStartNs: new Float32Array(count),
    fromEndNs: new Float32Array(count),
    toStartNs: new Float32Array(count),
    toEndNs: new Float32Array(count),
    fromRow: new Uint16Array(count),
    toRow: new Uint16Array(count),
    color: new Uint32Array(count),
    opacity: new Float32Array(count),
    instance: new Float32Array(count),
  };
}
