// The simulated cluster at a chosen time, without and with the change: one square per GPU, colored by its holder.

import { type KeyboardEvent, type PointerEvent, useCallback, useMemo, useRef, useState } from "react";
import type { WhatIfCourse } from "../../../api/generated.ts";
import { HOUR_MS, HOUR_S } from "../../../base/durations.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { formatInstant, formatShortDuration } from "../../../base/time.ts";
import { Canvas, useInk, useSize } from "../../../charts/canvas.tsx";
import type { Pen } from "../../../charts/pen.ts";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import { changeScheduling } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import {
  CELL_PX,
  CLOSED,
  type CourseLayout,
  countColumns,
  FREE,
  findChangedHolders,
  layOutNodes,
  type Moment,
  placeSpans,
  readMoment,
  STEP_PX,
} from "./course-layout.ts";
import styles from "./course-picture.module.css";
import { nativeId } from "./words.ts";

const STEP_H = 0.25;

interface CoursePictureProps {
  readonly course: WhatIfCourse;
  /** Hours from the start of the simulation. */
  readonly ahead: number;
}

export function CoursePicture({ course, ahead }: CoursePictureProps) {
  const change = useChangeScreen();
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const before = useMemo(() => placeSpans(course.baseline, course.nodes), [course]);
  const after = useMemo(() => placeSpans(course.changed, course.nodes), [course]);
  const maxH = Math.ceil((course.until_at - course.from_at) / HOUR_MS / STEP_H) * STEP_H;
  const shownH = Math.min(ahead, maxH);
  const atMs = Math.min(course.from_at + shownH * HOUR_MS, course.until_at - 1);
  const baseline = useMemo(() => readMoment(course, before, false, atMs), [course, before, atMs]);
  const changed = useMemo(() => readMoment(course, after, true, atMs), [course, after, atMs]);
  const changedHolders = useMemo(
    () => changed.holders.map((row, node) => findChangedHolders(baseline.holders[node] ?? [], row)),
    [baseline.holders, changed.holders],
  );
  const changedGpus = changedHolders.reduce((sum, row) => sum + row.filter(Boolean).length, 0);
  return (
    <ChartCard
      title="GPU allocation"
      hint={`assuming median run times and no new submissions; ${formatPlural(changedGpus, "GPU")} with a changed holder`}
      isWide
      twin={{
        header: ["node", "partition", "GPUs", "current holders", "holders with the change"],
        rows: course.nodes.map((node, place) => [
          node.node,
          node.partition,
          node.gpus,
          listHolders(course, baseline.holders[place] ?? []),
          listHolders(course, changed.holders[place] ?? []),
        ]),
      }}
    >
      <label className={styles.time}>
        <span>
          {shownH === 0 ? "Now" : `In ${formatShortDuration(shownH * HOUR_S)}`},{" "}
          <b>{formatInstant(course.from_at + shownH * HOUR_MS, course.from_at)}</b>
        </span>
        <input
          type="range"
          min={0}
          max={maxH}
          step={STEP_H}
          value={shownH}
          aria-label="Hours from now"
          aria-valuetext={`in ${formatShortDuration(shownH * HOUR_S)}`}
          onChange={(event) => change(changeScheduling({ ahead: event.target.valueAsNumber }), "replace")}
        />
      </label>
      <div className={styles.pair}>
        <Cells
          title="Current"
          course={course}
          moment={baseline}
          changedHolders={null}
          pointed={pointed}
          setPointed={setPointed}
        />
        <Cells
          title="With the change"
          course={course}
          moment={changed}
          changedHolders={changedHolders}
          pointed={pointed}
          setPointed={setPointed}
        />
      </div>
      <p className={styles.legend}>
        <i data-kind="running" /> running now <i data-kind="waiting" /> waiting now <i data-kind="free" /> free{" "}
        <i data-kind="closed" /> closed <i data-kind="other" /> changed holder
        {course.left_out > 0 && <>; {formatCount(course.left_out)} more nodes are not shown</>}
      </p>
    </ChartCard>
  );
}

interface Pointed {
  readonly node: number;
  readonly gpu: number;
}

interface CellsProps {
  readonly title: string;
  readonly course: WhatIfCourse;
  readonly moment: Moment;
  readonly changedHolders: readonly (readonly boolean[])[] | null;
  readonly pointed: Pointed | null;
  setPointed(pointed: Pointed | null): void;
}

function Cells({ title, course, moment, changedHolders, pointed, setPointed }: CellsProps) {
  const place = useRef<HTMLDivElement>(null);
  const { width } = useSize(place);
  const ink = useInk();
  const layout = useMemo(() => layOutNodes(course.nodes, Math.max(60, width)), [course.nodes, width]);
  const marked = pointed ? (moment.holders[pointed.node]?.[pointed.gpu] ?? FREE) : FREE;
  const draw = useCallback(
    (pen: Pen) => paint(pen, ink, course, layout, moment, changedHolders, marked),
    [ink, course, layout, moment, changedHolders, marked],
  );
  const onPointerMove = (event: PointerEvent) => {
    const box = place.current?.getBoundingClientRect();
    if (box) setPointed(findPointed(course, layout, event.clientX - box.left, event.clientY - box.top));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") setPointed(null);
    if (step === undefined) return;
    event.preventDefault();
    setPointed(walk(course, pointed, step, event.key === "ArrowRight" || event.key === "ArrowLeft"));
  };
  const label = `${title}: ${formatCount(moment.free)} GPUs free, ${formatCount(moment.onPartlyHeldNodes)} of them on partly held nodes`;
  return (
    <figure className={styles.figure}>
      <figcaption>
        <b>{title}</b> {formatCount(moment.free)} free
        {moment.onPartlyHeldNodes > 0 && `, ${formatCount(moment.onPartlyHeldNodes)} of them on partly held nodes`}
      </figcaption>
      <div
        ref={place}
        className={styles.cells}
        style={{ height: layout.height }}
        role="img"
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: so that the keyboard reaches the drawing
        tabIndex={0}
        onPointerMove={onPointerMove}
        onPointerLeave={() => setPointed(null)}
        onBlur={() => setPointed(null)}
        onKeyDown={onKeyDown}
      >
        <Canvas size={{ width, height: layout.height }} draw={draw} />
      </div>
      <p className={styles.pointed} role="status">
        {pointed ? describeGpu(course, moment, pointed) : "\u00a0"}
      </p>
    </figure>
  );
}

function paint(
  pen: Pen,
  ink: (css: string) => string,
  course: WhatIfCourse,
  layout: CourseLayout,
  moment: Moment,
  changedHolders: readonly (readonly boolean[])[] | null,
  marked: number,
): void {
  const [track, muted, accent, text, line] = ["--track", "--muted", "--accent", "--text", "--line"].map((name) =>
    ink(`var(${name})`),
  );
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = muted ?? "";
  for (const { text: name, y } of layout.labels) pen.fillText(name, 0, y);
  for (const { node, x, y } of layout.boxes) {
    const row = moment.holders[node] ?? [];
    const columns = countColumns(course.nodes[node]?.gpus ?? 0);
    row.forEach((holder, gpu) => {
      const [left, top] = [x + (gpu % columns) * STEP_PX, y + Math.floor(gpu / columns) * STEP_PX];
      pen.globalAlpha = holder >= 0 && !course.holders[holder]?.is_waiting ? 0.45 : 1;
      pen.fillStyle =
        (holder === FREE ? track : holder === CLOSED ? line : course.holders[holder]?.is_waiting ? accent : muted) ??
        "";
      if (holder >= 0 && holder === marked) [pen.globalAlpha, pen.fillStyle] = [1, text ?? ""];
      pen.fillRect(left, top, CELL_PX, CELL_PX);
      pen.globalAlpha = 1;
      if (changedHolders?.[node]?.[gpu]) {
        pen.strokeStyle = text ?? "";
        pen.strokeRect(left + 0.5, top + 0.5, CELL_PX - 1, CELL_PX - 1);
      }
    });
  }
}

function findPointed(course: WhatIfCourse, layout: CourseLayout, x: number, y: number): Pointed | null {
  for (const box of layout.boxes) {
    const gpus = course.nodes[box.node]?.gpus ?? 0;
    const columns = countColumns(gpus);
    const [column, row] = [Math.floor((x - box.x) / STEP_PX), Math.floor((y - box.y) / STEP_PX)];
    if (column < 0 || column >= columns || row < 0 || row > 1) continue;
    const gpu = row * columns + column;
    return gpu < gpus ? { node: box.node, gpu } : null;
  }
  return null;
}

/** The next GPU, or the next node. */
function walk(course: WhatIfCourse, from: Pointed | null, step: number, isGpu: boolean): Pointed | null {
  if (from === null) return course.nodes.length > 0 ? { node: 0, gpu: 0 } : null;
  const gpus = course.nodes[from.node]?.gpus ?? 0;
  const gpu = from.gpu + step;
  if (isGpu && gpu >= 0 && gpu < gpus) return { node: from.node, gpu };
  const node = Math.min(course.nodes.length - 1, Math.max(0, from.node + step));
  const last = Math.max(0, (course.nodes[node]?.gpus ?? 1) - 1);
  return { node, gpu: isGpu && step < 0 && node !== from.node ? last : 0 };
}

function describeGpu(course: WhatIfCourse, moment: Moment, { node, gpu }: Pointed): string {
  const name = `${course.nodes[node]?.node ?? ""}, GPU ${gpu}`;
  const holder = moment.holders[node]?.[gpu];
  if (holder === undefined) return `${name}: not present`;
  if (holder === FREE) return `${name}: free`;
  if (holder === CLOSED) return `${name}: closed`;
  const workload = course.holders[holder];
  const size = workload?.gpus ? ` of ${formatPlural(workload.gpus, "GPU")}` : "";
  return `${name}: ${nativeId(workload?.workload ?? "")}${size}${workload?.user ? `, ${workload.user}` : ""}`;
}

function listHolders(course: WhatIfCourse, row: readonly number[]): string {
  const counts = new Map<string, number>();
  for (const holder of row) {
    const name = holder >= 0 ? (course.holders[holder]?.workload ?? "") : holder === CLOSED ? "closed" : "free";
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(", ");
}
