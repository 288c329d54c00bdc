// The canvases of the picture and what moves on them: group boxes behind, squares, outlines before, and an overlay for the
// pointer. Owns the camera, the flight of units and when to draw; knows nothing of React or of what units are.

import type { Marks, Projection, SlotNames } from "../../../layers/squares/marks.ts";
import { PickGrid } from "../../../layers/squares/pick-grid.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import {
  type Box,
  centerOn,
  fitCamera,
  isSameCamera,
  panCamera,
  prefersReducedMotion,
  revealSquare,
  type Size,
  showsAll,
  toLayout,
  windowOf,
  zoomCamera,
  zoomToBox,
} from "./camera.ts";
import { cameraAt, type Flight, progressOf } from "./flight.ts";
import { type GroupFlight, startGroupFlight } from "./group-flight.ts";
import { boxOf, paintGroups } from "./group-painter.ts";
import { findGroup, groupBox, pointsAtGroup } from "./groups.ts";
import { NOTHING_OUTLINED, type Outlined, paintOutlines, squareOf } from "./outline-painter.ts";
import { Overlay, type OverlayElements } from "./overlay.ts";
import { NOTHING_POINTED, type Pointed } from "./pointed.ts";
import { findBar, headWidth } from "./rules/rule-bars.ts";
import type { RuleMarks } from "./rules/rule-marks.ts";
import { paintRuleBars, paintUnitSlots } from "./rules/rule-painter.ts";
import { Sheet, type SheetFrame } from "./sheet.ts";
import { SquareSheet } from "./square-sheet.ts";
import type { Tokens } from "./tokens.ts";
import { type CaptionOf, paintCaptions } from "./unit-painter.ts";

const FLIGHT_MS = 700;
const CAMERA_MS = 260;
/** So long after its last move the camera is at rest. */
const REST_MS = 120;
/** If less than this share of the picture is visible, the rest is not sent to the GPU. */
const CULLED_SHARE = 0.6;
/** If there are more groups, their boxes and names are not painted while units fly. */
const MANY_GROUPS = 2000;
/** Ways back that are remembered. */
const MOST_BACK = 20;

export interface StageElements extends OverlayElements {
  readonly groups: HTMLCanvasElement;
  readonly squares: HTMLCanvasElement;
  readonly outlines: HTMLCanvasElement;
}

export class Stage {
  readonly #elements: StageElements;
  readonly #squares: SquareSheet;
  readonly #groupSheet: Sheet;
  readonly #outlineSheet: Sheet;
  readonly #overlay: Overlay;
  #layout: UnitLayout | null = null;
  #grid: PickGrid | null = null;
  #tokens: Tokens | null = null;
  #outlined: Outlined = NOTHING_OUTLINED;
  #pointed: Pointed = NOTHING_POINTED;
  #focused: number | null = null;
  #marks: Marks | null = null;
  #captionOf: CaptionOf | null = null;
  #rules: RuleMarks | null = null;
  readonly #watchers = new Set<() => void>();
  #viewport: Size = { width: 0, height: 0 };
  /** What a fitted camera fills. */
  #fitSize: Size = { width: 0, height: 0 };
  #camera: Projection = { scale: 1, offsetX: 0, offsetY: 0 };
  #isFitted = true;
  #back: Projection[] = [];
  #flight: Flight | null = null;
  /** Null while boxes do not fly, or are others than before. */
  #groupFlight: GroupFlight | null = null;
  #frame: number | null = null;
  #movedAt = Number.NEGATIVE_INFINITY;
  #rest: ReturnType<typeof setTimeout> | undefined;

  /** Throws where the browser cannot draw. */
  constructor(elements: StageElements) {
    this.#elements = elements;
    this.#squares = new SquareSheet(elements.squares);
    this.#groupSheet = new Sheet(elements.groups);
    this.#outlineSheet = new Sheet(elements.outlines);
    this.#overlay = new Overlay(elements);
  }

  dispose(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    clearTimeout(this.#rest);
    this.#squares.dispose();
  }

  /** `keepsFit`: only the details panel opened or closed, and nothing may move under the pointer. */
  setSize(viewport: Size, pixelRatio: number, keepsFit = false): void {
    this.#viewport = viewport;
    if (!keepsFit) this.#fitSize = viewport;
    this.#squares.resize(viewport, pixelRatio);
    this.#groupSheet.resize(viewport, pixelRatio);
    this.#outlineSheet.resize(viewport, pixelRatio);
    if (this.#isFitted && this.#flight === null) this.#camera = this.#fitted();
    // A canvas is blank after a change of its size; waiting for the next frame would show it.
    this.#draw(performance.now());
  }

  /** Units fly from where they are; the first layout is simply there. */
  setLayout(layout: UnitLayout, names: SlotNames): void {
    const isFirst = this.#layout === null;
    const from = this.#current(performance.now());
    const former = this.#groupFlight?.layout ?? this.#layout;
    this.#groupFlight = former === null || layout.groups.count > MANY_GROUPS ? null : startGroupFlight(former, layout);
    this.#layout = layout;
    this.#rules = null;
    this.#grid = new PickGrid(layout, layout.bounds);
    this.#outlined = NOTHING_OUTLINED;
    this.#pointed = NOTHING_POINTED;
    this.#focused = null;
    this.#back = [];
    this.#squares.setPlaces(layout, names);
    this.#invalidate();
    if (this.#isFitted) this.#camera = this.#fitted();
    this.#fly(isFirst ? this.#camera : from, isFirst || prefersReducedMotion() ? 0 : FLIGHT_MS, true);
  }

  /** `captionOf`: what is written into squares that are near. */
  setMarks(marks: Marks, captionOf: CaptionOf): void {
    this.#marks = marks;
    this.#captionOf = captionOf;
    this.#squares.setMarks(marks);
    this.#outlineSheet.invalidate();
    this.#request();
  }

  /** Of the present layout. */
  setRules(rules: RuleMarks): void {
    this.#rules = rules;
    this.#groupSheet.invalidate();
    this.#outlineSheet.invalidate();
    this.#request();
  }

  setTokens(tokens: Tokens): void {
    this.#tokens = tokens;
    this.#invalidate();
    this.#request();
  }

  setOutlined(outlined: Outlined): void {
    this.#outlined = outlined;
    this.#outlineSheet.invalidate();
    this.#request();
  }

  /** Costs no drawing: the overlay alone changes. */
  setPointed(pointed: Pointed, focused: number | null): void {
    this.#pointed = pointed;
    this.#focused = focused;
    this.#placeOverlay(this.#current(performance.now()));
  }

  /** The box or loop being drawn, in page pixels. */
  setSketch(points: readonly (readonly [number, number])[]): void {
    this.#overlay.sketch(points);
  }

  point(x: number, y: number): Pointed {
    const layout = this.#layout;
    if (layout === null || this.#flight?.movesUnits) return NOTHING_POINTED;
    const at = toLayout(this.#camera, x, y);
    const row = this.#grid?.find(...at) ?? null;
    const group = findGroup(layout, ...at);
    const isMeant = row !== null || (group !== null && pointsAtGroup(layout, group, ...at, this.#camera));
    const rule = row === null && this.#rules ? findBar(layout, this.#rules, this.#camera, x, y) : null;
    if (rule !== null) return { row: null, group: null, rule };
    return isMeant ? { row, group, rule } : NOTHING_POINTED;
  }

  /** The innermost group at a point, also where nothing is pointed at. */
  findGroup(x: number, y: number): number | null {
    return this.#layout && findGroup(this.#layout, ...toLayout(this.#camera, x, y));
  }

  get grid(): PickGrid | null {
    return this.#grid;
  }

  get viewport(): Size {
    return this.#viewport;
  }

  /** Where a point of the page is in the layout. */
  toLayout(x: number, y: number): readonly [number, number] {
    return toLayout(this.#camera, x, y);
  }

  pan(dx: number, dy: number): void {
    this.#take(panCamera(this.#land(), dx, dy));
  }

  zoom(factor: number, x: number, y: number): void {
    this.#take(zoomCamera(this.#land(), factor, x, y, this.#fitted()));
  }

  zoomMiddle(factor: number): void {
    this.zoom(factor, this.#viewport.width / 2, this.#viewport.height / 2);
  }

  /** A point of the layout comes to the middle at once: the map's window is dragged. */
  center(x: number, y: number): void {
    this.#take(centerOn(this.#land(), x, y, this.#viewport));
  }

  zoomToGroup(group: number): void {
    if (this.#layout === null) return;
    this.#back = [...this.#back, this.#camera].slice(-MOST_BACK);
    this.#flyTo(zoomToBox(groupBox(this.#layout, group), this.#viewport, this.#fitted()), false);
  }

  /** To where a group was zoomed to from; everything where there is no such place. */
  goBack(): void {
    const before = this.#back.pop();
    if (before === undefined || isSameCamera(before, this.#fitted())) this.fit();
    else this.#flyTo(before, false);
  }

  fit(): void {
    this.#fitSize = this.#viewport;
    this.#back = [];
    this.#flyTo(this.#fitted(), true);
  }

  reveal(row: number): void {
    const { x, y } = this.#layout ?? {};
    const camera = revealSquare(this.#camera, x?.[row] ?? 0, y?.[row] ?? 0, this.#viewport);
    if (camera !== this.#camera) this.#take(camera);
  }

  get camera(): Projection {
    return this.#camera;
  }

  /** The visible part in units of the layout; null: everything. */
  get window(): Box | null {
    const camera = this.#current(performance.now());
    const isWhole = this.#layout === null || showsAll(camera, this.#viewport, this.#layout.bounds);
    return isWhole ? null : windowOf(camera, this.#viewport);
  }

  /** Whether it shows everything, and follows the size of the page. */
  get isFitted(): boolean {
    return this.#isFitted;
  }

  /** All of a box of the layout, as large as there is room, at once. */
  showBox(box: Box): void {
    const scale = Math.min(this.#viewport.width / box.width, this.#viewport.height / box.height);
    this.#take(
      centerOn({ ...this.#camera, scale }, box.left + box.width / 2, box.top + box.height / 2, this.#viewport),
    );
    this.#flight = null;
  }

  /** Tells when the camera has moved. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** The center of a row's square on the canvas, in page pixels; null: not visible. */
  locate(row: number): readonly [x: number, y: number] | null {
    const { scale, offsetX, offsetY } = this.#camera;
    const { x, y } = this.#layout ?? {};
    const left = ((x?.[row] ?? 0) + 0.5) * scale + offsetX;
    const top = ((y?.[row] ?? 0) + 0.5) * scale + offsetY;
    const isVisible = left >= 0 && top >= 0 && left <= this.#viewport.width && top <= this.#viewport.height;
    return isVisible ? [left, top] : null;
  }

  #fitted(): Projection {
    return fitCamera(this.#layout?.bounds ?? { width: 1, height: 1 }, this.#fitSize);
  }

  #take(camera: Projection): void {
    this.#camera = camera;
    this.#isFitted = false;
    this.#movedAt = performance.now();
    this.#request();
  }

  #flyTo(camera: Projection, isFitted: boolean): void {
    const from = this.#current(performance.now());
    this.#camera = camera;
    this.#isFitted = isFitted;
    this.#fly(from, prefersReducedMotion() ? 0 : CAMERA_MS, this.#flight?.movesUnits ?? false);
  }

  #fly(from: Projection, durationMs: number, movesUnits: boolean): void {
    this.#flight = { start: null, from, durationMs, movesUnits };
    // Set until the last frame of the animation, so that tests know when the picture is at rest.
    this.#elements.squares.dataset.moving = "";
    this.#request();
  }

  /** Who takes the camera in hand does not wait for it to arrive; units fly on. */
  #land(): Projection {
    if (this.#flight === null) return this.#camera;
    this.#camera = this.#current(performance.now());
    if (this.#flight.movesUnits) this.#flight = { ...this.#flight, from: this.#camera };
    else this.#flight = null;
    return this.#camera;
  }

  #current(now: number): Projection {
    return cameraAt(this.#flight, this.#camera, now);
  }

  #invalidate(): void {
    this.#groupSheet.invalidate();
    this.#outlineSheet.invalidate();
  }

  #request(): void {
    if (this.#frame !== null) return;
    this.#frame = requestAnimationFrame((now) => {
      this.#frame = null;
      this.#draw(now);
    });
  }

  #draw(now: number): void {
    if (this.#flight?.start === null) this.#flight = { ...this.#flight, start: now };
    const progress = progressOf(this.#flight, now);
    const camera = this.#current(now);
    const movesUnits = this.#flight?.movesUnits ?? false;
    if (progress >= 1) this.#flight = null;
    else this.#request();
    const flown = movesUnits ? progress : 1;
    this.#flyGroups(flown);
    if (this.#flight === null) delete this.#elements.squares.dataset.moving;
    const isMoving = this.#flight !== null || now - this.#movedAt < REST_MS;
    const areSquaresCrisp =
      this.#layout === null ||
      this.#squares.show({ camera, flown, movesUnits, isMoving, now }, () => this.#listVisible(camera));
    if (movesUnits && this.#hasManyGroups()) this.#hideSheets();
    else this.#showSheets({ camera, target: this.#camera, isMoving, opacity: flown * flown }, areSquaresCrisp);
    if (flown >= 1) this.#groupFlight = null;
    this.#placeOverlay(camera);
    for (const watcher of this.#watchers) watcher();
  }

  #flyGroups(flown: number): void {
    if (this.#groupFlight === null) return;
    this.#groupFlight.moveTo(flown);
    this.#groupSheet.invalidate();
  }

  /** The rows whose squares can be seen; null where it is not worth telling them from the others. */
  #listVisible(camera: Projection): Uint32Array | null {
    const { bounds } = this.#layout ?? {};
    if (bounds === undefined || this.#grid === null) return null;
    const { left, top, width, height } = windowOf(camera, this.#viewport);
    if (width * height > CULLED_SHARE * bounds.width * bounds.height) return null;
    return this.#grid.listWithin(left, top, left + width, top + height);
  }

  /** Boxes move with their units; new boxes and outlines fade in as units arrive. */
  #showSheets(frame: SheetFrame, areSquaresCrisp: boolean): void {
    const layout = this.#layout;
    const tokens = this.#tokens;
    if (layout === null || tokens === null) return;
    const viewport = this.#viewport;
    const rules = this.#rules;
    const boxes = this.#groupFlight?.layout ?? layout;
    const groupFrame = this.#groupFlight === null ? frame : { ...frame, opacity: 1 };
    // Nearly all units stay: outlines and captions that went and came would flicker.
    const outlineFrame = layout.isKept ? groupFrame : frame;
    const areGroupsCrisp = this.#groupSheet.show(groupFrame, (context, camera) => {
      const takenOf = (group: number) => (rules ? headWidth(boxes, rules, group, camera) : 0);
      const painted = paintGroups(context, boxes, camera, viewport, tokens, takenOf);
      return painted + (rules ? paintRuleBars(context, boxes, rules, camera, viewport, tokens) : 0);
    });
    const areOutlinesCrisp = this.#outlineSheet.show(outlineFrame, (context, camera) => {
      let painted = paintOutlines(context, layout, this.#outlined, camera, viewport, tokens);
      if (this.#marks !== null && this.#captionOf !== null) {
        const rows = this.#listVisible(camera) ?? layout.size.keys();
        painted += paintCaptions(context, layout, this.#marks, this.#captionOf, camera, viewport, tokens, rows);
      }
      return painted + (rules ? paintUnitSlots(context, layout, rules, camera, viewport, tokens) : 0);
    });
    if ((areSquaresCrisp && areGroupsCrisp && areOutlinesCrisp) || this.#flight !== null) return;
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.#request(), REST_MS);
  }

  /** Painting them takes longer than a frame in flight should: they come when units have arrived. */
  #hasManyGroups(): boolean {
    return this.#layout !== null && this.#layout.groups.count > MANY_GROUPS;
  }

  #hideSheets(): void {
    this.#groupSheet.hide();
    this.#outlineSheet.hide();
    this.#request();
  }

  #placeOverlay(camera: Projection): void {
    const layout = this.#layout;
    const { row, group } = this.#pointed;
    if (layout === null) return;
    if (row !== null) this.#overlay.hover(squareOf(layout, row, camera), 2);
    else this.#overlay.hover(group === null ? null : boxOf(layout, group, camera), 0);
    this.#overlay.focus(this.#focused === null ? null : squareOf(layout, this.#focused, camera));
  }
}
