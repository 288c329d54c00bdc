// A histogram with a range brush: by mouse (drag, move, resize, double-click clears) or by two thumbs and the arrow
// keys. Positions are 0 to 1; the caller maps them to values.

import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import styles from "./range-brush.module.css";

export interface BrushRange {
  readonly from: number;
  readonly to: number;
}

interface RangeBrushProps {
  readonly label: string;
  /** Counts of all, drawn faint, and of those that pass, drawn over them; equally long. */
  readonly all: Uint32Array;
  readonly kept: Uint32Array;
  /** The color of each bin, as a strip below; null: none. */
  readonly ramp: readonly string[] | null;
  /** Null: everything. */
  readonly range: BrushRange | null;
  /** What a place is called. */
  say(place: number): string;
  /** `isFirst`: the first of several changes while the pointer is down. */
  onChange(range: BrushRange | null, isFirst: boolean): void;
  onHover?(bin: number | null): void;
}

const HEIGHT = 34;
/** Distance in page pixels at which an end can be grabbed. */
const GRIP_PX = 7;
const LEAST_DRAG_PX = 3;
const KEY_STEP = 0.01;
const KEY_LEAP = 0.1;

type Grip = "from" | "to" | "both" | "new";

interface Drag {
  readonly grip: Grip;
  readonly startX: number;
  readonly start: number;
  readonly range: BrushRange;
  hasMoved: boolean;
}

export function RangeBrush({ label, all, kept, ramp, range, say, onChange, onHover }: RangeBrushProps) {
  const place = useRef<HTMLDivElement>(null);
  const drag = useRef<Drag | null>(null);
  const [grip, setGrip] = useState<Grip>("new");
  const shown = range ?? { from: 0, to: 1 };
  const widthPx = () => Math.max(1, place.current?.clientWidth ?? 1);
  const placeAt = (event: PointerEvent) => {
    const left = place.current?.getBoundingClientRect().left ?? 0;
    return clamp((event.clientX - left) / widthPx());
  };
  const onPointerDown = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    const start = placeAt(event);
    const gripAt = findGrip(range, start, widthPx());
    drag.current = { grip: gripAt, startX: event.clientX, start, range: shown, hasMoved: false };
    onHover?.(null);
  };
  const onPointerMove = (event: PointerEvent) => {
    const at = placeAt(event);
    const active = drag.current;
    if (active === null) {
      setGrip(findGrip(range, at, widthPx()));
      onHover?.(Math.min(all.length - 1, Math.floor(at * all.length)));
      return;
    }
    if (!active.hasMoved && Math.abs(event.clientX - active.startX) < LEAST_DRAG_PX) return;
    const isFirst = !active.hasMoved;
    active.hasMoved = true;
    onChange(dragRange(active, at), isFirst);
  };
  const onPointerUp = () => {
    drag.current = null;
  };
  return (
    <div className={styles.brush}>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be a grid that fits its place */}
      <div
        ref={place}
        className={styles.area}
        role="group"
        aria-label={label}
        data-grip={grip}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={onPointerUp}
        onPointerLeave={() => drag.current === null && onHover?.(null)}
        onDoubleClick={() => onChange(null, true)}
      >
        <Bars all={all} kept={kept} />
        {ramp && <i className={styles.ramp} style={{ background: toGradient(ramp) }} />}
        {range && (
          <>
            <span className={styles.outside} style={{ left: 0, width: percent(range.from) }} />
            <span className={styles.outside} style={{ left: percent(range.to), right: 0 }} />
          </>
        )}
        {(["from", "to"] as const).map((end) => (
          <Thumb key={end} end={end} label={label} range={shown} isSet={range !== null} say={say} onChange={onChange} />
        ))}
      </div>
    </div>
  );
}

function Bars({ all, kept }: { all: Uint32Array; kept: Uint32Array }) {
  // Heights are square roots, so that small bins stay visible next to large ones.
  const highest = Math.sqrt(all.reduce((most, count) => Math.max(most, count), 1));
  const path = (counts: Uint32Array) => {
    let text = "";
    counts.forEach((count, bin) => {
      if (count === 0) return;
      const height = Math.max(1.5, (Math.sqrt(count) / highest) * HEIGHT);
      text += `M${bin + 0.1} ${HEIGHT}v${-height}h0.8v${height}z`;
    });
    return text;
  };
  return (
    <svg aria-hidden="true" viewBox={`0 0 ${all.length} ${HEIGHT}`} preserveAspectRatio="none">
      <path className={styles.all} d={path(all)} />
      <path className={styles.kept} d={path(kept)} />
    </svg>
  );
}

interface ThumbProps {
  readonly end: "from" | "to";
  readonly label: string;
  readonly range: BrushRange;
  readonly isSet: boolean;
  say(place: number): string;
  onChange(range: BrushRange | null, isFirst: boolean): void;
}

function Thumb({ end, label, range, isSet, say, onChange }: ThumbProps) {
  const value = range[end];
  const onKeyDown = (event: KeyboardEvent) => {
    const next = keyPlace(event, value);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    const bounded = end === "from" ? Math.min(next, range.to) : Math.max(next, range.from);
    onChange(toRange({ ...range, [end]: bounded }), !isSet);
  };
  return (
    <span
      role="slider"
      tabIndex={0}
      className={styles.thumb}
      data-set={isSet || undefined}
      style={{ left: percent(value) }}
      aria-label={`${label}, ${end === "from" ? "from" : "up to"}`}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(value * 100)}
      aria-valuetext={say(value)}
      onKeyDown={onKeyDown}
    />
  );
}

function keyPlace({ key, shiftKey }: KeyboardEvent, value: number): number | null {
  const step = shiftKey ? KEY_LEAP : KEY_STEP;
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown":
      return clamp(value - step);
    case "ArrowRight":
    case "ArrowUp":
      return clamp(value + step);
    case "PageDown":
      return clamp(value - KEY_LEAP);
    case "PageUp":
      return clamp(value + KEY_LEAP);
    case "Home":
      return 0;
    case "End":
      return 1;
    default:
      return null;
  }
}

export function findGrip(range: BrushRange | null, at: number, widthPx: number): Grip {
  if (range === null) return "new";
  const near = GRIP_PX / widthPx;
  if (Math.abs(at - range.to) <= near) return "to";
  if (Math.abs(at - range.from) <= near) return "from";
  return at > range.from && at < range.to ? "both" : "new";
}

export function dragRange(
  { grip, start, range }: Pick<Drag, "grip" | "start" | "range">,
  at: number,
): BrushRange | null {
  switch (grip) {
    case "new":
      return toRange({ from: Math.min(start, at), to: Math.max(start, at) });
    case "from":
      return toRange({ from: Math.min(at, range.to), to: range.to });
    case "to":
      return toRange({ from: range.from, to: Math.max(at, range.from) });
    case "both": {
      const moved = Math.min(1 - range.to, Math.max(-range.from, at - start));
      return toRange({ from: range.from + moved, to: range.to + moved });
    }
  }
}

/** The whole domain counts as no range. */
function toRange(range: BrushRange): BrushRange | null {
  return range.from <= 0 && range.to >= 1 ? null : range;
}

function clamp(place: number): number {
  return Math.min(1, Math.max(0, place));
}

function percent(place: number): string {
  return `${place * 100}%`;
}

/** Each color fills its part: a scale of few steps shows them. */
function toGradient(ramp: readonly string[]): string {
  const stops = ramp.map(
    (color, index) => `${color} ${percent(index / ramp.length)} ${percent((index + 1) / ramp.length)}`,
  );
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
