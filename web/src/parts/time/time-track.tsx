// The bars of the history with a handle: bright for used, pale for allocated, amber for requested GPUs. The handle
// follows the pointer immediately; the screen follows as fast as data arrives.

import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from "react";
import type { Timeline } from "../../api/generated.ts";
import { MINUTE_MS } from "../../base/durations.ts";
import { formatExact, formatInstant } from "../../base/time.ts";
import type { Moment } from "../../state/time.ts";
import { useWidth } from "../../widgets/data-table/use-width.ts";
import styles from "./time-bar.module.css";
import { drawBars, findStep, listLabels, type TimeScale, toMoment, toX } from "./time-scale.ts";

interface TimeTrackProps {
  readonly timeline: Timeline | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly at: Moment;
  /** Whether the picture is not yet of the minute asked for. */
  readonly isBehind: boolean;
  onMove(to: number, isFirst: boolean): void;
  onKeyDown(event: KeyboardEvent): void;
  describe(step: { allocated: number; total: number; waiting: number; utilRatio: number | null }): string;
}

const BAR_PX = 26;
/** Browsers refuse more than some changes of the address a second. */
const MOVE_EVERY_MS = 80;

export function TimeTrack({ timeline, startMs, endMs, at, isBehind, onMove, onKeyDown, describe }: TimeTrackProps) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const scale: TimeScale = { startMs, endMs, width };
  const [hovered, setHovered] = useState<number | null>(null);
  const drag = useDrag(place, scale, onMove, setHovered);
  const value = drag.at ?? at ?? endMs;
  const pointed = drag.at ?? hovered;
  return (
    <div
      ref={place}
      className={styles.track}
      role="slider"
      tabIndex={0}
      aria-label="Time shown"
      aria-valuemin={startMs}
      aria-valuemax={endMs}
      aria-valuenow={value}
      aria-valuetext={value >= endMs ? "now" : formatExact(value)}
      aria-busy={isBehind}
      onKeyDown={onKeyDown}
      {...drag.handlers}
    >
      {timeline && width > 0 && <Bars timeline={timeline} startMs={startMs} endMs={endMs} width={width} />}
      <i className={styles.handle} style={{ left: toX(scale, value) }} aria-hidden="true" />
      {pointed !== null && (
        <Pointed at={pointed} scale={scale} words={timeline ? wordsAt(timeline, pointed, describe) : ""} />
      )}
    </div>
  );
}

function Pointed({ at, scale, words }: { at: number; scale: TimeScale; words: string }) {
  const x = toX(scale, at);
  return (
    <>
      <i className={styles.pointed} style={{ left: x }} aria-hidden="true" />
      <div
        className={styles.tip}
        style={{ left: Math.min(Math.max(x, 0), scale.width) }}
        data-end={x > scale.width - 180 || undefined}
        data-start={x < 180 || undefined}
      >
        <b>{formatInstant(at, scale.endMs)}</b>
        {words && ` · ${words}`}
      </div>
    </>
  );
}

function wordsAt(timeline: Timeline, at: number, describe: TimeTrackProps["describe"]): string {
  const step = findStep(timeline.time_ms, timeline.step_ms, at);
  if (step === null) return "";
  return describe({
    allocated: timeline.allocated_gpus[step] ?? 0,
    total: timeline.total_gpus,
    waiting: timeline.waiting_gpus[step] ?? 0,
    utilRatio: timeline.gpu_util_ratio[step] ?? null,
  });
}

function Bars({ timeline, startMs, endMs, width }: { timeline: Timeline } & TimeScale) {
  const paths = useMemo(() => {
    const scale = { startMs, endMs, width };
    const total = Math.max(1, timeline.total_gpus);
    const allocatedShare = timeline.allocated_gpus.map((gpus) => gpus / total);
    const used = allocatedShare.map((ratio, step) => ratio * (timeline.gpu_util_ratio[step] ?? 0));
    const mostWaiting = Math.max(1, ...timeline.waiting_gpus);
    const draw = (heights: readonly number[]) => drawBars(scale, timeline.time_ms, timeline.step_ms, heights, BAR_PX);
    const waiting = timeline.time_ms
      .map((time, step) => {
        const height = BAR_PX - ((timeline.waiting_gpus[step] ?? 0) / mostWaiting) * (BAR_PX - 2);
        return `${step === 0 ? "M" : "L"}${toX(scale, time).toFixed(1)} ${height.toFixed(1)}`;
      })
      .join("");
    return { held: draw(allocatedShare), used: draw(used), waiting };
  }, [timeline, startMs, endMs, width]);
  const offsetMs = -new Date(endMs).getTimezoneOffset() * MINUTE_MS;
  return (
    <>
      <svg className={styles.bars} width={width} height={BAR_PX} aria-hidden="true">
        <path className={styles.held} d={paths.held} />
        <path className={styles.used} d={paths.used} />
        <path className={styles.waiting} d={paths.waiting} />
      </svg>
      {listLabels({ startMs, endMs, width }, offsetMs).map(({ atMs, isDay }) => (
        <span
          key={atMs}
          className={styles.label}
          data-day={isDay || undefined}
          style={{ left: toX({ startMs, endMs, width }, atMs) }}
        >
          {labelWords(atMs, isDay)}
        </span>
      ))}
    </>
  );
}

const HOURS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAYS = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

function labelWords(atMs: number, isDay: boolean): string {
  return (isDay ? DAYS : HOURS).format(atMs);
}

interface Drag {
  /** Where the handle is while it is dragged. */
  readonly at: number | null;
  readonly handlers: {
    onPointerDown(event: PointerEvent<HTMLElement>): void;
    onPointerMove(event: PointerEvent<HTMLElement>): void;
    onPointerUp(event: PointerEvent<HTMLElement>): void;
    onPointerCancel(): void;
    onPointerLeave(): void;
  };
}

function useDrag(
  place: { readonly current: HTMLElement | null },
  scale: TimeScale,
  onMove: TimeTrackProps["onMove"],
  onHover: (at: number | null) => void,
): Drag {
  const [at, setAt] = useState<number | null>(null);
  const lastMove = useRef({ timeMs: 0, isFirst: true });
  const find = (event: PointerEvent<HTMLElement>) =>
    toMoment(scale, event.clientX - (place.current?.getBoundingClientRect().left ?? 0));
  const reportMove = (to: number, isLast: boolean) => {
    const timeMs = performance.now();
    if (!isLast && timeMs - lastMove.current.timeMs < MOVE_EVERY_MS) return;
    onMove(to, lastMove.current.isFirst);
    lastMove.current = { timeMs, isFirst: false };
  };
  const end = () => setAt(null);
  return {
    at,
    handlers: {
      onPointerDown(event) {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        const to = find(event);
        lastMove.current = { timeMs: 0, isFirst: true };
        setAt(to);
        reportMove(to, false);
      },
      onPointerMove(event) {
        const to = find(event);
        onHover(to);
        if (at === null) return;
        setAt(to);
        reportMove(to, false);
      },
      onPointerUp(event) {
        if (at !== null) reportMove(find(event), true);
        end();
      },
      onPointerCancel: end,
      onPointerLeave: () => onHover(null),
    },
  };
}
