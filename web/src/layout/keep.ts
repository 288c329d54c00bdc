// Keeps the positions of a previous layout of the same view. A group stays where it is while it fits; a group that must
// move takes the place that displaces nothing: its own box grown in place, a gap, or the repacked box of its siblings.
// Only if none of these has room does the parent box grow. A box shrinks only at its lower right, which moves nothing.

import { isNames, type NameValues, type UnitColumns } from "./attributes.ts";
import { type Boxes, EPSILON, type Extent } from "./boxes.ts";
import type { GroupKey } from "./encode.ts";
import type { View } from "./grammar.ts";
import type { GroupTree } from "./group.ts";
import type { Measured } from "./measure.ts";
import { arrange, equalize, makeMeasured, measureBox, setGrid } from "./measure.ts";
import { createPacker, type Packer } from "./pack.ts";
import { listLeastWidths, type Spacing } from "./targets.ts";
import { chooseGrid, directionOf } from "./unit-grid.ts";

/** A layout as the next one of the same view needs it. */
export interface Packing {
  readonly tree: GroupTree;
  readonly spacing: Spacing;
  readonly measured: Measured;
  /** By row; null where units have no names. */
  readonly units: NameValues | null;
  /** The whole when it was last packed from scratch. */
  readonly packed: Extent;
}

/** Where more of the groups than this came or went, there is little to keep: a filter changed, or hours were skipped. */
const MOST_CHANGED = 1 / 3;
/** So few may come and go however few there are. */
const FEW_CHANGED = 8;
/** Pairs of boxes to compare for those that need a place, before packing all again is quicker. */
const MOST_COMPARISONS = 20_000_000;
/** Siblings are pushed aside only if that takes less than this share of the space that moving to the edge takes. */
const WORTH_PUSHING = 0.95;
const PUSHES_PER_BOX = 20;
/** Lines of a grid against those its units need, before it is made tight. */
const MOST_LOOSE = 1.3;
/** Widths to try for the content of a group that finds no room, against the one it has. */
const OTHER_WIDTHS = [1, 0.8, 1.25, 0.65, 1.55];
/** Siblings are packed again only if that takes less than this share of the space that they take now. */
const WORTH_PACKING = 0.92;
/** The whole is shown larger only if it needs less than this share of the space that it needed before. */
const WORTH_GROWING = 0.93;

export function findUnitNames({ attributes }: UnitColumns): NameValues | null {
  const values = attributes.get("unit");
  return values !== undefined && isNames(values) ? values : null;
}

/** Null where too much has changed. `units`: their names, by row. */
export function keepPlaces(
  view: View,
  tree: GroupTree,
  units: NameValues | null,
  packing: Packing,
  aspect: number,
): Measured | null {
  const before = matchGroups(tree, packing.tree);
  if (hasChangedMuch(tree, packing.tree, before)) return null;
  const measured = makeMeasured(tree.groupCount, new Uint32Array(tree.rows.length));
  const leastWidths = listLeastWidths(packing.spacing, tree);
  const kept: Kept = { leastWidths, view, tree, before, measured, packing };
  keepCells(kept, units);
  const packer = createPacker(tree.groupCount);
  const { spacing } = packing;
  for (let group = tree.groupCount - 1; group >= 0; group -= 1) {
    const depth = tree.depth[group] ?? 0;
    const former = before[group] ?? -1;
    if (depth < view.layers.length) {
      const placed = keepChildren(kept, group, aspect, packer);
      if (placed === null) return null;
      const layer = view.layers[depth];
      if (layer?.layout === "pack" && layer.size === "count") readContents(tree, group, measured, spacing);
      measured.content.width[group] = placed.width;
      measured.content.height[group] = placed.height;
    }
    // In a list a smaller box would draw all after it along.
    if (former >= 0 && depth > 0 && view.layers[depth - 1]?.layout !== "pack") {
      const { width, height } = packing.measured.content;
      measured.content.width[group] = Math.max(measured.content.width[group] ?? 0, width[former] ?? 0);
      measured.content.height[group] = Math.max(measured.content.height[group] ?? 0, height[former] ?? 0);
    }
    measureBox(measured, group, depth, spacing, leastWidths);
  }
  return measured;
}

/** Groups may have got another shape to find room: what is inside follows from that. */
function readContents(tree: GroupTree, parent: number, { boxes, content }: Measured, spacing: Spacing): void {
  const depth = (tree.depth[parent] ?? 0) + 1;
  const padding = 2 * (spacing.padding[depth] ?? 0);
  const end = tree.childStart[parent + 1] ?? 0;
  for (let group = tree.childStart[parent] ?? 0; group < end; group += 1) {
    content.width[group] = (boxes.width[group] ?? 0) - padding;
    content.height[group] = (boxes.height[group] ?? 0) - padding - (spacing.labelHeight[depth] ?? 0);
  }
}

interface Kept {
  readonly leastWidths: Float64Array | null;
  readonly view: View;
  readonly tree: GroupTree;
  /** The former group of each group; −1 where it is new. */
  readonly before: Int32Array;
  readonly measured: Measured;
  readonly packing: Packing;
}

type Grouped = Pick<GroupTree, "groupCount" | "depth" | "parent" | "key" | "layers">;

/** For each group the one of another tree with the same name in the same place of the hierarchy; −1 where there is none. */
function matchGroups(tree: Grouped, former: Grouped): Int32Array {
  const matches = new Int32Array(tree.groupCount).fill(-1);
  const isSame =
    tree.layers.length === former.layers.length &&
    tree.layers.every(({ attribute }, index) => attribute === former.layers[index]?.attribute);
  if (!isSame || tree.groupCount === 0 || former.groupCount === 0) return matches;
  const keys = tree.layers.map((layer, index) => {
    const codes = new Map(former.layers[index]?.keys.map((key, code) => [identify(key), code]));
    return layer.keys.map((key) => codes.get(identify(key)) ?? -1);
  });
  const widths = former.layers.map((layer) => layer.keys.length);
  const places = new Map<number, number>();
  const placeOf = (parent: number, key: number, depth: number) => parent * (widths[depth - 1] ?? 1) + key;
  for (let group = 1; group < former.groupCount; group += 1) {
    places.set(placeOf(former.parent[group] ?? 0, former.key[group] ?? 0, former.depth[group] ?? 0), group);
  }
  matches[0] = 0;
  for (let group = 1; group < tree.groupCount; group += 1) {
    const depth = tree.depth[group] ?? 0;
    const parent = matches[tree.parent[group] ?? 0] ?? -1;
    const key = keys[depth - 1]?.[tree.key[group] ?? 0] ?? -1;
    const match = parent < 0 || key < 0 ? undefined : places.get(placeOf(parent, key, depth));
    if (match !== undefined && former.depth[match] === depth && former.parent[match] === parent) matches[group] = match;
  }
  return matches;
}

/** The same for the groups of two layouts. */
export function matchLayouts(layout: PlacedGroups, former: PlacedGroups): Int32Array {
  const treeOf = ({ groups, layers }: PlacedGroups) => ({ ...groups, groupCount: groups.count, layers });
  return matchGroups(treeOf(layout), treeOf(former));
}

interface PlacedGroups {
  readonly groups: Pick<GroupTree, "depth" | "parent" | "key"> & { readonly count: number };
  readonly layers: GroupTree["layers"];
}

function identify(key: GroupKey): string {
  switch (key.kind) {
    case "name":
      return `=${key.name}`;
    case "number":
      return `#${key.value}`;
    case "bin":
      return `${key.from}…${key.to}`;
    case "other":
      return "other";
    case "missing":
      return `none ${key.apart?.name ?? ""}`;
  }
}

function hasChangedMuch(tree: GroupTree, former: GroupTree, before: Int32Array): boolean {
  const first = tree.depthStart[tree.layers.length] ?? 0;
  let matched = 0;
  for (let group = first; group < tree.groupCount; group += 1) if ((before[group] ?? -1) >= 0) matched += 1;
  const now = tree.groupCount - first;
  const then = former.groupCount - (former.depthStart[former.layers.length] ?? 0);
  const changed = now - matched + (then - matched);
  return before[0] !== 0 || (changed > FEW_CHANGED && changed > MOST_CHANGED * Math.max(now, then));
}

/** Units stay in their cells, newcomers take the empty ones; units in an order of their own are always in that order. */
function keepCells(all: Kept, units: NameValues | null): void {
  const { view, tree, before, measured, packing } = all;
  const cells = measured.cells ?? new Uint32Array();
  const former = view.mark.sort === null ? findFormerCells(tree, units, packing) : null;
  const depth = view.layers.length;
  let isTaken = new Uint8Array(64);
  for (let group = tree.depthStart[depth] ?? 0; group < tree.groupCount; group += 1) {
    const match = before[group] ?? -1;
    const start = tree.unitStart[group] ?? 0;
    const end = start + (tree.unitCount[group] ?? 0);
    const across = match < 0 ? chooseAcross(all, group) : (packing.measured.across[match] ?? 1);
    const cellCount = (match < 0 ? 0 : (packing.measured.lines[match] ?? 0) * across) + end - start;
    if (isTaken.length < cellCount) isTaken = new Uint8Array(2 * cellCount);
    else isTaken.fill(0, 0, cellCount);
    // Where many have left, those of the last lines take the cells of the gone.
    const most = Math.max(1, Math.ceil((end - start) / across));
    const isLoose = match >= 0 && (packing.measured.lines[match] ?? 0) > most * MOST_LOOSE;
    const kept = isLoose ? most * across : Number.POSITIVE_INFINITY;
    const isKept = (unit: number) =>
      former !== null && match >= 0 && former.group[unit] === match && (former.cell[unit] ?? 0) < kept;
    for (let unit = start; unit < end; unit += 1) {
      if (!isKept(unit)) continue;
      const cell = former?.cell[unit] ?? 0;
      cells[unit] = cell;
      isTaken[cell] = 1;
    }
    let next = 0;
    let last = -1;
    for (let unit = start; unit < end; unit += 1) {
      if (!isKept(unit)) {
        while (isTaken[next] === 1) next += 1;
        cells[unit] = next;
        next += 1;
      }
      last = Math.max(last, cells[unit] ?? 0);
    }
    const lines = Math.floor(last / across) + 1;
    setGrid(measured, view, group, start === end ? 0 : across, lines);
  }
}

interface FormerCells {
  /** By unit, in the order of the tree's rows: the former group and the cell in it; no group: none. */
  readonly group: Int32Array;
  readonly cell: Uint32Array;
}

/** By the names of units; mostly they are the same in the same rows. */
function findFormerCells({ rows }: GroupTree, units: NameValues | null, packing: Packing): FormerCells | null {
  const then = packing.units;
  if (units === null || then === null) return null;
  const places = listFormerCells(packing, then.codes.length);
  const nameOf = ({ codes, names }: NameValues, row: number) => names[codes[row] ?? 0] ?? null;
  let formerRows: Map<string | null, number> | null = null;
  const findRow = (name: string | null) => {
    formerRows ??= new Map(Array.from(then.codes, (_, row) => [nameOf(then, row), row]));
    return name === null ? -1 : (formerRows.get(name) ?? -1);
  };
  const former: FormerCells = { group: new Int32Array(rows.length).fill(-1), cell: new Uint32Array(rows.length) };
  for (let unit = 0; unit < rows.length; unit += 1) {
    const row = rows[unit] ?? 0;
    const name = nameOf(units, row);
    const formerRow = name !== null && name === nameOf(then, row) ? row : findRow(name);
    if (formerRow < 0) continue;
    former.group[unit] = places.group[formerRow] ?? -1;
    former.cell[unit] = places.cell[formerRow] ?? 0;
  }
  return former;
}

/** By row. */
function listFormerCells({ tree, measured: { cells } }: Packing, rowCount: number): FormerCells {
  const former: FormerCells = { group: new Int32Array(rowCount).fill(-1), cell: new Uint32Array(rowCount) };
  for (let group = tree.depthStart[tree.layers.length] ?? 0; group < tree.groupCount; group += 1) {
    const start = tree.unitStart[group] ?? 0;
    const count = tree.unitCount[group] ?? 0;
    for (let index = 0; index < count; index += 1) {
      const row = tree.rows[start + index] ?? 0;
      former.group[row] = group;
      former.cell[row] = cells === null ? index : (cells[start + index] ?? 0);
    }
  }
  return former;
}

/** Of a new group: as its siblings have it where all are to be compared, else near to the shape the layer aims at. */
function chooseAcross({ view, tree, before, packing }: Kept, group: number): number {
  const layer = view.layers.at(-1);
  const count = Math.max(1, tree.unitCount[group] ?? 0);
  if (layer !== undefined && layer.layout !== "pack") {
    const parent = tree.parent[group] ?? 0;
    const end = tree.childStart[parent + 1] ?? 0;
    for (let sibling = tree.childStart[parent] ?? 0; sibling < end; sibling += 1) {
      const match = before[sibling] ?? -1;
      if (match >= 0) return Math.max(1, packing.measured.across[match] ?? 1);
    }
  }
  const pitch = 1 + view.mark.padding;
  const width = Math.sqrt(count * (layer?.aspect ?? 1)) * pitch;
  const { columns, rows } = chooseGrid(view.mark, count, { width, height: (count * pitch * pitch) / width });
  return Math.max(1, directionOf(view.mark) === "rows" ? columns : rows);
}

/** The extent of the children's places; null where all must be laid out from scratch. */
function keepChildren(kept: Kept, group: number, aspect: number, packer: Packer): Extent | null {
  const { view, tree, before, measured, packing } = kept;
  const depth = tree.depth[group] ?? 0;
  const layer = view.layers[depth];
  const from = tree.childStart[group] ?? 0;
  const to = tree.childStart[group + 1] ?? 0;
  const former = before[group] ?? -1;
  const gap = packing.spacing.padding[depth + 1] ?? 0;
  if (layer === undefined || from === to) return { width: 0, height: 0 };
  if (layer.size === "uniform") equalizeAsBefore(kept, from, to);
  const content = {
    width: former < 0 ? 0 : (packing.measured.content.width[former] ?? 0),
    height: former < 0 ? 0 : (packing.measured.content.height[former] ?? 0),
  };
  if (layer.layout !== "pack") {
    const isAlongX = layer.layout === "listX";
    const wrapAt = former < 0 ? null : isAlongX ? content.width : content.height;
    const target = former < 0 ? targetOf(measured.boxes, from, to, layer.aspect) : content;
    const list = { ...layer, limit: layer.limit ?? wrapAt };
    return larger(arrange(list, measured.boxes, from, to, gap, target, packer), content);
  }
  if (former < 0) {
    return packer.arrange(measured.boxes, from, to, gap, targetOf(measured.boxes, from, to, layer.aspect));
  }
  const room = group === 0 ? fillShape(content, aspect) : content;
  const shape = group === 0 ? aspect : content.width / Math.max(EPSILON, content.height);
  const places = new KeptPlaces(kept, from, to, gap, room, shape, createReshaper(kept, packer));
  // Groups that are to be alike all grow at once.
  const isLost = !places.isQuick || (layer.size === "uniform" && places.hasGrown);
  if (isLost)
    return group === 0 && layer.size === "count" ? null : packer.arrange(measured.boxes, from, to, gap, content);
  if (!places.settle()) {
    if (group !== 0) {
      const packed = packer.fill(measured.boxes, from, to, gap, content.width);
      if (packed !== null && packed.height <= content.height + EPSILON) return packed;
      places.restore();
    }
    places.makeRoom();
    if (group !== 0) return packIfTighter(measured.boxes, from, to, gap, content, places.extent(), packer);
  }
  const extent = places.extent();
  return group === 0 && isNearly(extent, content, aspect) ? larger(extent, content) : extent;
}

/** All packed again where that takes clearly less than `extent`, which their present places take. */
function packIfTighter(
  boxes: Boxes,
  from: number,
  to: number,
  gap: number,
  content: Extent,
  extent: Extent,
  packer: Packer,
): Extent {
  const places = { x: boxes.x.slice(from, to), y: boxes.y.slice(from, to) };
  const packed = packer.arrange(boxes, from, to, gap, content);
  if (packed.width * packed.height < extent.width * extent.height * WORTH_PACKING) return packed;
  boxes.x.set(places.x, from);
  boxes.y.set(places.y, from);
  return extent;
}

/** Gives the content of a packed group another width; whether it could. Its parts keep their size. */
type Reshape = (group: number, width: number) => boolean;

function createReshaper({ leastWidths, view, tree, measured, packing }: Kept, packer: Packer): Reshape {
  return (group, width) => {
    const depth = tree.depth[group] ?? 0;
    const from = tree.childStart[group] ?? 0;
    const to = tree.childStart[group + 1] ?? 0;
    const layer = view.layers[depth];
    if (layer?.layout !== "pack" || to - from < 2) return false;
    const packed = packer.fill(measured.boxes, from, to, packing.spacing.padding[depth + 1] ?? 0, width);
    if (packed === null) return false;
    const padding = 2 * (packing.spacing.padding[depth] ?? 0);
    measured.boxes.width[group] = Math.max(packed.width + padding, leastWidths?.[group] ?? 0);
    measured.boxes.height[group] = packed.height + padding + (packing.spacing.labelHeight[depth] ?? 0);
    return true;
  };
}

/** Whether the picture would not become much larger with the new extent: then it stays as large as it is. */
function isNearly(extent: Extent, former: Extent, aspect: number): boolean {
  const needed = ({ width, height }: Extent) => Math.max(width / aspect, height);
  return needed(extent) > needed(former) * WORTH_GROWING;
}

function equalizeAsBefore({ measured, before, packing }: Kept, from: number, to: number): void {
  const { width, height } = measured.boxes;
  for (let child = from; child < to; child += 1) {
    const match = before[child] ?? -1;
    if (match < 0) continue;
    width[child] = Math.max(width[child] ?? 0, packing.measured.boxes.width[match] ?? 0);
    height[child] = Math.max(height[child] ?? 0, packing.measured.boxes.height[match] ?? 0);
  }
  equalize(measured.boxes, from, to);
}

function targetOf({ width, height }: Boxes, from: number, to: number, aspect: number): Extent {
  let area = 0;
  for (let child = from; child < to; child += 1) area += (width[child] ?? 0) * (height[child] ?? 0);
  const across = Math.max(1, Math.sqrt(area * aspect));
  return { width: across, height: Math.max(1, area / across) };
}

/** The content with what the space has left over on its sides. */
function fillShape({ width, height }: Extent, aspect: number): Extent {
  return { width: Math.max(width, height * aspect), height: Math.max(height, width / aspect) };
}

function larger(a: Extent, b: Extent): Extent {
  return { width: Math.max(a.width, b.width), height: Math.max(a.height, b.height) };
}

/** The places of packed siblings: those that stay, and those that need one. */
class KeptPlaces {
  readonly #boxes: Boxes;
  readonly #gap: number;
  readonly #room: Extent;
  readonly #shape: number;
  readonly #settled: number[] = [];
  /** Siblings that outgrew their place, and those that have none yet. */
  readonly #grown: number[] = [];
  #homeless: number[] = [];
  readonly #reshape: Reshape;
  #saved: Boxes | null = null;

  constructor(
    { measured, before, packing }: Kept,
    from: number,
    to: number,
    gap: number,
    room: Extent,
    shape: number,
    reshape: Reshape,
  ) {
    this.#reshape = reshape;
    this.#boxes = measured.boxes;
    this.#gap = gap;
    this.#room = room;
    this.#shape = shape;
    const { x, y, width, height } = measured.boxes;
    const then = packing.measured.boxes;
    for (let child = from; child < to; child += 1) {
      const match = before[child] ?? -1;
      if (match < 0) {
        this.#homeless.push(child);
        continue;
      }
      x[child] = then.x[match] ?? 0;
      y[child] = then.y[match] ?? 0;
      const isSame =
        (width[child] ?? 0) <= (then.width[match] ?? 0) + EPSILON &&
        (height[child] ?? 0) <= (then.height[match] ?? 0) + EPSILON;
      if (isSame) this.#settled.push(child);
      else this.#grown.push(child);
    }
    const area = (child: number) => (width[child] ?? 0) * (height[child] ?? 0);
    this.#homeless.sort((a, b) => area(b) - area(a) || a - b);
  }

  get hasGrown(): boolean {
    return this.#grown.length > 0;
  }

  get isQuick(): boolean {
    const all = this.#settled.length + this.#grown.length + this.#homeless.length;
    return (this.#grown.length + this.#homeless.length) * all * all * 2 <= MOST_COMPARISONS;
  }

  /** Whether each has a place in the room there is, with nobody pushed. */
  settle(): boolean {
    const { x, y } = this.#boxes;
    const moving: number[] = [];
    const waiting = [...this.#grown];
    for (const [index, child] of waiting.entries()) {
      const others = [...this.#settled, ...waiting.slice(index + 1)];
      if (this.#isFree(child, x[child] ?? 0, y[child] ?? 0, others, this.#room)) this.#settled.push(child);
      else moving.push(child);
    }
    this.#grown.length = 0;
    const unsettled: number[] = [];
    for (const child of moving) if (!this.#moveInto(child, this.#room) && !this.#fitIn(child)) unsettled.push(child);
    this.#grown.push(...unsettled);
    this.#homeless = this.#homeless.filter((child) => !this.#moveInto(child, this.#room));
    this.#saved = this.#save();
    return this.#grown.length === 0 && this.#homeless.length === 0;
  }

  /** To where they were settled, after others tried other places. */
  restore(): void {
    if (this.#saved !== null) this.#load(this.#saved);
  }

  /** In another shape, at its place or in a gap. */
  #fitIn(child: number): boolean {
    const { x, y, width } = this.#boxes;
    const currentWidth = width[child] ?? 0;
    const saved = this.#save();
    for (const share of OTHER_WIDTHS) {
      if (!this.#reshape(child, currentWidth * share)) continue;
      if (this.#isFree(child, x[child] ?? 0, y[child] ?? 0, this.#settled, this.#room)) {
        this.#settled.push(child);
        return true;
      }
      if (this.#moveInto(child, this.#room)) return true;
    }
    this.#load(saved);
    return false;
  }

  /** The rest get places beyond the room, or push their siblings aside where that takes less; in the shape that takes least. */
  makeRoom(): void {
    for (const child of this.#grown) {
      const currentWidth = this.#boxes.width[child] ?? 0;
      const start = this.#save();
      let best = start;
      let least = Number.POSITIVE_INFINITY;
      const consider = (cost: number) => {
        if (cost >= least) return;
        least = cost;
        best = this.#save();
      };
      for (const share of [null, ...OTHER_WIDTHS]) {
        this.#load(start);
        if (share !== null && !this.#reshape(child, currentWidth * share)) continue;
        const shaped = this.#save();
        this.#moveInto(child, null);
        this.#settled.pop();
        consider(this.#cost([...this.#settled, child]));
        this.#load(shaped);
        if (this.#push(child)) consider(this.#cost([...this.#settled, child]) / WORTH_PUSHING);
      }
      this.#load(best);
      this.#settled.push(child);
    }
    for (const child of this.#homeless) this.#moveInto(child, null);
    this.#grown.length = 0;
    this.#homeless = [];
  }

  #save(): Boxes {
    const { x, y, width, height } = this.#boxes;
    return { x: x.slice(), y: y.slice(), width: width.slice(), height: height.slice() };
  }

  #load({ x, y, width, height }: Boxes): void {
    this.#boxes.x.set(x);
    this.#boxes.y.set(y);
    this.#boxes.width.set(width);
    this.#boxes.height.set(height);
  }

  extent(): Extent {
    return this.#extentOf(this.#settled);
  }

  /** Moves a box to the first free corner of the room, or to the one that needs least beyond it where there is no limit. */
  #moveInto(child: number, room: Extent | null): boolean {
    const { x, y, width, height } = this.#boxes;
    const used = this.#extentOf(this.#settled);
    let best: { x: number; y: number } | null = null;
    let least = Number.POSITIVE_INFINITY;
    const consider = (left: number, top: number) => {
      const right = left + (width[child] ?? 0);
      const bottom = top + (height[child] ?? 0);
      const cost =
        room === null ? this.#needed(Math.max(used.width, right), Math.max(used.height, bottom)) : bottom * 1e3 + right;
      if (cost >= least || !this.#isFree(child, left, top, this.#settled, room)) return;
      least = cost;
      best = { x: left, y: top };
    };
    consider(0, 0);
    for (const other of this.#settled) {
      const right = (x[other] ?? 0) + (width[other] ?? 0) + this.#gap;
      const bottom = (y[other] ?? 0) + (height[other] ?? 0) + this.#gap;
      consider(right, y[other] ?? 0);
      consider(right, 0);
      consider(x[other] ?? 0, bottom);
      consider(0, bottom);
    }
    const place = best as { x: number; y: number } | null;
    if (place === null) return false;
    x[child] = place.x;
    y[child] = place.y;
    this.#settled.push(child);
    return true;
  }

  #isFree(child: number, left: number, top: number, others: readonly number[], room: Extent | null): boolean {
    const { x, y, width, height } = this.#boxes;
    const right = left + (width[child] ?? 0);
    const bottom = top + (height[child] ?? 0);
    if (room !== null && (right > room.width + EPSILON || bottom > room.height + EPSILON)) return false;
    const gap = this.#gap - EPSILON;
    for (const other of others) {
      if (
        other !== child &&
        left < (x[other] ?? 0) + (width[other] ?? 0) + gap &&
        right > (x[other] ?? 0) - gap &&
        top < (y[other] ?? 0) + (height[other] ?? 0) + gap &&
        bottom > (y[other] ?? 0) - gap
      ) {
        return false;
      }
    }
    return true;
  }

  /**
   * Those in the way of a grown box go right or down, whichever is nearer, and those in their way in turn. Whether that came
   * to an end: boxes only go away from the corner, but two may take turns for long.
   */
  #push(child: number): boolean {
    const { x, y, width, height } = this.#boxes;
    const queue = [child];
    let left = this.#settled.length * PUSHES_PER_BOX;
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      for (const other of [child, ...this.#settled]) {
        if (other === next || this.#isFree(next, x[next] ?? 0, y[next] ?? 0, [other], null)) continue;
        if (left === 0) return false;
        left -= 1;
        // The one that grew stays; what came into its way goes past it.
        const [still, moved] = other === child ? [child, next] : [next, other];
        const right = (x[still] ?? 0) + (width[still] ?? 0) + this.#gap;
        const bottom = (y[still] ?? 0) + (height[still] ?? 0) + this.#gap;
        if (right - (x[moved] ?? 0) <= bottom - (y[moved] ?? 0)) x[moved] = right;
        else y[moved] = bottom;
        queue.push(moved);
      }
    }
    return true;
  }

  #cost(boxes: readonly number[]): number {
    const { width, height } = this.#extentOf(boxes);
    return this.#needed(width, height);
  }

  /** Of the whole there is only the larger side that matters, of inner boxes their area, too. */
  #needed(width: number, height: number): number {
    return Math.max(width / this.#shape, height) * 1e3 + Math.sqrt(width * height);
  }

  #extentOf(boxes: readonly number[]): Extent {
    const { x, y, width, height } = this.#boxes;
    let right = 0;
    let bottom = 0;
    for (const box of boxes) {
      right = Math.max(right, (x[box] ?? 0) + (width[box] ?? 0));
      bottom = Math.max(bottom, (y[box] ?? 0) + (height[box] ?? 0));
    }
    return { width: right, height: bottom };
  }
}
