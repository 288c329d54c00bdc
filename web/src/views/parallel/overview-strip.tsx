// The whole trace in one strip, with the window of the graph on it: drag the window, its ends, or a new one; or use keys.

import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from "react";
import type { TraceOverview } from "../../api/traces-client.ts";
import { useInk, useSize } from "../../charts/canvas.tsx";
import { dragRange, findGrip } from "../../charts/range-brush.tsx";
import { useOverview } from "../../data/traces.ts";
import type { NsWindow } from "../../state/parallel.ts";
import { formatNs } from "./graph/axis.ts";
import { KIND_COLORS } from "./graph/kinds.ts";
import { clampWindow, moveWindow, zoomWindow } from "./graph/windows.ts";
import { findIdleStretches, toNsWindow, toShares } from "./overview.ts";
import styles from "./overview-strip.module.css";
import type { Step } from "./steps.ts";

interface OverviewStripProps {
  readonly trace: string;
  readonly steps: readonly Step[];
  readonly window: NsWindow;
  readonly extent: NsWindow;
  onWindow(window: NsWindow): void;
}

const BINS = 800;
const HEIGHT = 40;
/** A drag reports its window to the page at most this often. */
const REPORT_MS = 60;
const MIN_DRAG_PX = 3;
/** A window is at least this wide on the strip, so that it can be seen and grabbed. */
const MIN_WINDOW_PX = 8;
/** Idle time is named if its text fits. */
const TEXT_PX = 90;
const KEY_MOVE = 0.25;
const KEY_ZOOM = 0.7;

export function OverviewStrip({ trace, steps, window, extent, onWindow }: OverviewStripProps) {
  const overview = useOverview(trace, BINS).value;
  const place = useRef<HTMLDivElement>(null);
  const { width } = useSize(place);
  const { shown, grip, handlers } = useDrag({ window, extent, width, onWindow });
  const shares = toShares(shown, extent);
  const left = Math.min(shares.from * width, width - MIN_WINDOW_PX);
  const boxWidth = Math.max(MIN_WINDOW_PX, (shares.to - shares.from) * width);
  const set = (next: NsWindow | null) => next && onWindow(next);
  const onKeyDown = (event: KeyboardEvent) => {
    const next = findKeyWindow(event.key, window, extent);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    set(next);
  };
  return (
    <section className={styles.strip} aria-label="Overview of the trace">
      <div ref={place} className={styles.area} data-grip={grip} {...handlers}>
        {overview && <Profile overview={overview} width={width} />}
        {steps.slice(1).map(({ step, fromNs }) => (
          <i
            key={step}
            className={styles.step}
            style={{ left: `${toShares({ fromNs, toNs: fromNs }, extent).from * 100}%` }}
          />
        ))}
        {overview &&
          findIdleStretches(overview).map(({ from, to }) =>
            (to - from) * width > TEXT_PX ? (
              <span
                key={from}
                className={styles.idle}
                style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }}
              >
                {formatNs((to - from) * (extent.toNs - extent.fromNs))} idle
              </span>
            ) : null,
          )}
        <div
          role="slider"
          tabIndex={0}
          className={styles.window}
          style={{ left, width: boxWidth }}
          aria-label="Window: arrow keys move it, + and − resize it"
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(((shares.from + shares.to) / 2) * 100)}
          aria-valuetext={`${formatNs(window.fromNs - extent.fromNs)} to ${formatNs(window.toNs - extent.fromNs)}`}
          onKeyDown={onKeyDown}
        >
          <i data-end="from" />
          <i data-end="to" />
        </div>
      </div>
    </section>
  );
}

function findKeyWindow(key: string, window: NsWindow, extent: NsWindow): NsWindow | null {
  const middle = (window.fromNs + window.toNs) / 2;
  switch (key) {
    case "ArrowLeft":
      return moveWindow(window, -KEY_MOVE, extent);
    case "ArrowRight":
      return moveWindow(window, KEY_MOVE, extent);
    case "PageUp":
      return moveWindow(window, -1, extent);
    case "PageDown":
      return moveWindow(window, 1, extent);
    case "Home":
      return clampWindow({ fromNs: extent.fromNs, toNs: extent.fromNs + window.toNs - window.fromNs }, extent);
    case "End":
      return clampWindow({ fromNs: extent.toNs - (window.toNs - window.fromNs), toNs: extent.toNs }, extent);
    case "+":
    case "=":
      return zoomWindow(window, middle, KEY_ZOOM, extent);
    case "-":
      return zoomWindow(window, middle, 1 / KEY_ZOOM, extent);
    default:
      return null;
  }
}

interface StripDrag {
  readonly grip: ReturnType<typeof findGrip>;
  /** 0–1 along the strip, and on the page. */
  readonly start: number;
  readonly x: number;
  readonly window: NsWindow;
  isMoved: boolean;
  /** The latest window of the drag. */
  result: NsWindow | null;
}

interface DragOptions {
  readonly window: NsWindow;
  readonly extent: NsWindow;
  readonly width: number;
  onWindow(window: NsWindow): void;
}

/** The window follows the pointer at once; the page follows at its own rate. */
function useDrag({ window, extent, width, onWindow }: DragOptions) {
  const [dragged, setDragged] = useState<NsWindow | null>(null);
  const [grip, setGrip] = useState("new");
  const drag = useRef<StripDrag | null>(null);
  const from = useRef({ from: 0, to: 1 });
  const report = useThrottled(onWindow);
  const shown = dragged ?? window;
  const at = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width)));
  };
  const clip = (shares: { readonly from: number; readonly to: number }) => ({
    from: Math.max(0, shares.from),
    to: Math.min(1, Math.max(shares.to, shares.from + MIN_WINDOW_PX / Math.max(1, width))),
  });
  const onPointerUp = () => {
    const active = drag.current;
    drag.current = null;
    if (active?.result) report.now(active.result);
    setDragged(null);
  };
  return {
    shown,
    grip,
    handlers: {
      onPointerDown(event: PointerEvent<HTMLElement>) {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = clip(toShares(window, extent));
        drag.current = {
          grip: findGrip(from.current, at(event), width),
          start: at(event),
          x: event.clientX,
          window,
          isMoved: false,
          result: null,
        };
      },
      onPointerMove(event: PointerEvent<HTMLElement>) {
        const active = drag.current;
        if (active === null) {
          setGrip(findGrip(clip(toShares(window, extent)), at(event), width));
          return;
        }
        active.isMoved ||= Math.abs(event.clientX - active.x) >= MIN_DRAG_PX;
        if (!active.isMoved) return;
        const shares = dragRange({ grip: active.grip, start: active.start, range: from.current }, at(event));
        const next = toNsWindow(shares ?? { from: 0, to: 1 }, extent);
        // Moving keeps the length, which may be less than the strip can show.
        const length = active.window.toNs - active.window.fromNs;
        const result = active.grip === "both" ? { fromNs: next.fromNs, toNs: next.fromNs + length } : next;
        if (result.toNs - result.fromNs < 1) return;
        active.result = result;
        setDragged(result);
        report.later(result);
      },
      onPointerUp,
      onPointerCancel: onPointerUp,
    },
  };
}

function useThrottled(onWindow: (window: NsWindow) => void) {
  const latest = useRef(onWindow);
  latest.current = onWindow;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const waiting = useRef<NsWindow | null>(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  return {
    later(window: NsWindow) {
      const isWaiting = waiting.current !== null;
      waiting.current = window;
      if (isWaiting) return;
      timer.current = setTimeout(() => {
        const next = waiting.current;
        waiting.current = null;
        if (next) latest.current(next);
      }, REPORT_MS);
    },
    now(window: NsWindow) {
      clearTimeout(timer.current);
      waiting.current = null;
      latest.current(window);
    },
  };
}

/** A row per stage or rank; in each, the share of the time that it computes, and above that, that it only communicates. */
function Profile({ overview, width }: { readonly overview: TraceOverview; readonly width: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const ink = useInk();
  useEffect(() => {
    const pen = canvas.current?.getContext("2d");
    if (!pen || !canvas.current || width === 0) return;
    const ratio = globalThis.devicePixelRatio || 1;
    canvas.current.width = Math.round(width * ratio);
    canvas.current.height = HEIGHT * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const pitch = HEIGHT / Math.max(1, overview.rows.length);
    const gap = pitch > 6 ? 1.5 : 0;
    const bar = width / overview.bins;
    const colors = [ink(KIND_COLORS.compute), ink(KIND_COLORS.communication)] as const;
    overview.rows.forEach((_, row) => {
      for (let bin = 0; bin < overview.bins; bin += 1) {
        const at = row * overview.bins + bin;
        let bottom = (row + 1) * pitch - gap;
        [overview.compute[at], overview.communication[at]].forEach((share, kind) => {
          const height = (share || 0) * (pitch - gap);
          if (height <= 0) return;
          pen.fillStyle = colors[kind] ?? "";
          pen.fillRect(bin * bar, bottom - height, Math.max(1, bar), height);
          bottom -= height;
        });
      }
    });
  }, [overview, width, ink]);
  return <canvas ref={canvas} />;
}
