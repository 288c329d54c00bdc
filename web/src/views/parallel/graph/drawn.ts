// Converts a Marey graph to the marks that the layer draws: colors, separate parts for waiting and working, and one instance number
// for all spans that are connected by bands. Pure.

import type { Marey, MareyBands, MareySpans } from "../../../api/marey.ts";
import { type BandMarks, type PackedColor, SPAN_STYLES, type SpanMarks, TIERS } from "../../../layers/marey/marks.ts";
import type { SpanColor } from "../../../state/parallel.ts";
import { kindsOf, type SpanKind } from "./kinds.ts";

export interface DrawnLook {
  readonly by: SpanColor;
  /** Highlights spans whose name contains it; empty: no search. */
  readonly text: string;
  readonly colorOf: (kind: SpanKind) => PackedColor;
  /** The color of a share 0–1. */
  readonly rampOf: (share: number) => PackedColor;
  /** Spans of other steps are dimmed; null: none are. */
  readonly step: number | null;
}

export interface Drawn {
  readonly marey: Marey;
  /** Times of the marks are relative to this. */
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
  /** Number of spans that match the search; null: no search. */
  readonly matchCount: number | null;
}

/** Opacity of spans that do not match the search. */
const UNMATCHED_OPACITY = 0.14;
const WAIT_OPACITY = 0.62;
/** Opacity of spans of other steps. */
const OTHER_STEP_OPACITY = 0.35;
const BAND_OPACITY = 0.3;
/** Opacity of messages and of bands below phases: they are many, and the phases show the same. */
const QUIET_BAND_OPACITY = 0.13;
/** Waiting is drawn separately from this share of the span on. */
const MIN_WAIT_SHARE = 0.02;

export function drawMarey(marey: Marey, baseNs: number, look: DrawnLook): Drawn {
  const { spans } = marey;
  const kinds = kindsOf(spans.class, spans.phase, spans.count);
  const instance = joinInstances(marey);
  const isMatch = searchNames(spans, look.text);
  const steps = look.step === null ? null : spans.step;
  const opacity = (span: number) => {
    const ofStep = steps?.[span] ?? Number.NaN;
    const isElsewhere = !Number.isNaN(ofStep) && ofStep !== look.step;
    return (isMatch === null || isMatch[span] === 1 ? 1 : UNMATCHED_OPACITY) * (isElsewhere ? OTHER_STEP_OPACITY : 1);
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
    matchCount: isMatch?.reduce((sum, match) => sum + match, 0) ?? null,
  };
}

/** One instance number for spans that are connected by bands, over any number of rows: that of their first span (union-find). */
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

/** For each span: whether it matches the search; null without a search. Compares each distinct name once. */
function searchNames({ name, namespace, count }: MareySpans, text: string): Uint8Array | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const findMatches = (names: readonly (string | null)[]) =>
    names.map((text) => text !== null && words.every((word) => text.toLowerCase().includes(word)));
  const [byName, bySpace] = [findMatches(name.names), findMatches(namespace.names)];
  const isMatch = new Uint8Array(count);
  for (let span = 0; span < count; span += 1) {
    isMatch[span] = byName[name.codes[span] ?? 0] || bySpace[namespace.codes[span] ?? 0] ? 1 : 0;
  }
  return isMatch;
}

function colorSpans(spans: MareySpans, kinds: readonly SpanKind[], { by, colorOf, rampOf }: DrawnLook): Uint32Array {
  const kindColors = new Map<SpanKind, PackedColor>();
  const ofKind = (kind: SpanKind) => {
    let color = kindColors.get(kind);
    if (color === undefined) {
      color = colorOf(kind);
      kindColors.set(kind, color);
    }
    return color;
  };
  const maximum = by === "slack" ? largest(spans.slackNs) : 1;
  const share = (span: number): number => {
    if (by === "critical") return spans.critical[span] ?? Number.NaN;
    if (by === "slack") return 1 - (spans.slackNs[span] ?? Number.NaN) / maximum;
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
  let maximum = 1;
  for (const value of values) if (value > maximum) maximum = value;
  return maximum;
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
    const wait = computeWait(spans, span);
    const isWaiting = wait > MIN_WAIT_SHARE * (end - start);
    const color = colors[span] ?? 0;
    const spanOpacity = opacity(span);
    if (isWaiting) {
      const at = addMark(marks, spans, span, start - baseNs, start + wait - baseNs, instance, tiers);
      marks.style[at] = SPAN_STYLES.thin;
      marks.color[at] = look.by === "class" ? waitColor : color;
      marks.opacity[at] = WAIT_OPACITY * spanOpacity;
      if (start + wait >= end) continue;
    }
    const at = addMark(marks, spans, span, (isWaiting ? start + wait : start) - baseNs, end - baseNs, instance, tiers);
    const isMerged = (members[span] ?? 1) > 1;
    if (isMerged) marks.softNs[at] = Math.max(0, (spans.maxNs[span] ?? 0) - (spans.medianNs[span] ?? 0));
    marks.style[at] = styleOf(kinds[span] ?? "host", isMerged);
    marks.color[at] = color;
    marks.opacity[at] = spanOpacity;
  }
  return marks;
}

/** Returns the index of the mark. */
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

/** How long a span waits before it works; for merged spans, which may overlap, the share of their total time. */
export function computeWait(spans: MareySpans, span: number): number {
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

/** Communication gets its own tier on rows where at least this share of it overlaps with phases. */
const MIN_OVERLAP = 0.25;

/** On rows with phases, device activity is drawn below them; on other rows spans fill the lane. */
function findTiers({ spans, rows }: Marey): Uint8Array {
  const phase = spans.class.names.indexOf("phase");
  const communication = spans.class.names.indexOf("communication");
  const tiers = new Uint8Array(spans.count);
  if (phase < 0) return tiers;
  const overlap = findOverlaps(spans, rows.length, phase, communication);
  for (let span = 0; span < spans.count; span += 1) {
    const share = overlap[spans.row[span] ?? 0] ?? Number.NaN;
    if (Number.isNaN(share)) continue;
    const code = spans.class.codes[span];
    const hasOwnTier = share > MIN_OVERLAP;
    if (code === phase) tiers[span] = hasOwnTier ? TIERS.top : TIERS.upper;
    else if (code === communication) tiers[span] = hasOwnTier ? TIERS.middle : TIERS.upper;
    else tiers[span] = TIERS.lower;
  }
  return tiers;
}

/** By row: the share of communication time that overlaps with phases; NaN without phases. Spans are sorted by start. */
function findOverlaps(spans: MareySpans, rowCount: number, phase: number, communication: number): Float64Array {
  const [phaseEnds, communicationNs, overlapNs] = [0, 0, 0].map(() => new Float64Array(rowCount)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  phaseEnds.fill(Number.NaN);
  for (let span = 0; span < spans.count; span += 1) {
    const row = spans.row[span] ?? 0;
    const [start, end] = [spans.startNs[span] ?? 0, spans.endNs[span] ?? 0];
    const phaseEnd = phaseEnds[row] ?? Number.NaN;
    if (spans.class.codes[span] === phase) phaseEnds[row] = Number.isNaN(phaseEnd) ? end : Math.max(phaseEnd, end);
    if (spans.class.codes[span] !== communication) continue;
    communicationNs[row] = (communicationNs[row] ?? 0) + end - start;
    if (phaseEnd > start) overlapNs[row] = (overlapNs[row] ?? 0) + Math.min(end, phaseEnd) - start;
  }
  return phaseEnds.map((phaseEnd, row) =>
    Number.isNaN(phaseEnd) ? phaseEnd : (overlapNs[row] ?? 0) / Math.max(1, communicationNs[row] ?? 0),
  );
}

function drawBands(
  { spans, bands }: Marey,
  baseNs: number,
  { instance, tiers, opacity, colors }: Pick<Parts, "instance" | "tiers" | "opacity" | "colors">,
): BandMarks {
  const message = bands.kind.names.indexOf("message");
  const marks = startBands(bands.count);
  // A loop, not `from`: filling typed arrays by iterators is several times slower, and there may be tens of thousands.
  for (let band = 0; band < bands.count; band += 1) {
    const [from, to] = [bands.fromSpan[band] ?? 0, bands.toSpan[band] ?? 0];
    const isMessage = message >= 0 && bands.kind.codes[band] === message;
    const isQuiet = isMessage || tiers[from] === TIERS.lower;
    marks.fromStartNs[band] = (bands.fromStartNs[band] ?? 0) - baseNs;
    marks.fromEndNs[band] = (bands.fromEndNs[band] ?? 0) - baseNs;
    marks.toStartNs[band] = (isMessage ? findArrival(spans, bands, band) : (bands.toStartNs[band] ?? 0)) - baseNs;
    marks.toEndNs[band] = (bands.toEndNs[band] ?? 0) - baseNs;
    marks.fromRow[band] = spans.row[from] ?? 0;
    marks.toRow[band] = spans.row[to] ?? 0;
    marks.color[band] = colors[to] ?? 0;
    marks.opacity[band] = (isQuiet ? QUIET_BAND_OPACITY : BAND_OPACITY) * Math.min(opacity(from), opacity(to));
    marks.instance[band] = instance[from] ?? 0;
  }
  return marks;
}

/** A message arrives when its receive stops waiting. */
function findArrival(spans: MareySpans, bands: MareyBands, band: number): number {
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
