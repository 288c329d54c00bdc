// The cluster as it would be at a chosen time: every GPU a square by who holds it, as it is and with the change.

import { type KeyboardEvent, type PointerEvent, useCallback, useMemo, useRef, useState } from "react";
import type { WhatIfCourse } from "../../../api/generated.ts";
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
  columnsOf,
  FREE,
  findOthers,
  layOutNodes,
  type Moment,
  placeSpans,
  readMoment,
  STEP_PX,
} from "./course-layout.ts";
import styles from "./course-picture.module.css";
import { nativeId } from "./words.ts";

const HOUR_MS = 3_600_000;
const STEP_H = 0.25;

interface CoursePictureProps {
  readonly course: WhatIfCourse;
  /** Hours from then on. */
  readonly ahead: number;
}

export function CoursePicture({ course, ahead }: CoursePictureProps) {
  const change = useChangeScreen();
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const before = useMemo(() => placeSpans(course.baseline, course.nodes), [course]);
  const after = useMemo(() => placeSpans(course.changed, course.nodes), [course]);
  const mostH = Math.ceil((course.until_at - course.from_at) / HOUR_MS / STEP_H) * STEP_H;
  const shownH = Math.min(ahead, mostH);
  const atMs = Math.min(course.from_at + shownH * HOUR_MS, course.until_at - 1);
  const is = useMemo(() => readMoment(course, before, false, atMs), [course, before, atMs]);
  const then = useMemo(() => readMoment(course, after, true, atMs), [course, after, atMs]);
  const others = useMemo(
    () => then.holders.map((row, node) => findOthers(is.holders[node] ?? [], row)),
    [is.holders, then.holders],
  );
  const moved = others.reduce((sum, row) => sum + row.filter(Boolean).length, 0);
  return (
    <ChartCard
      title="Who would hold which GPU"
      hint={`if every run takes its middle time and nobody else comes; ${formatPlural(moved, "GPU")} with another holder than as it is`}
      isWide
      twin={{
        header: ["node", "partition", "GPUs", "held as it is by", "held then by"],
        rows: course.nodes.map((node, place) => [
          node.node,
          node.partition,
          node.gpus,
          listHolders(course, is.holders[place] ?? []),
          listHolders(course, then.holders[place] ?? []),
        ]),
      }}
    >
      <label className={styles.time}>
        <span>
          {shownH === 0 ? "Now" : `In ${formatShortDuration(shownH * 3600)}`},{" "}
          <b>{formatInstant(course.from_at + shownH * HOUR_MS, course.from_at)}</b>
        </span>
        <input
          type="range"
          min={0}
          max={mostH}
          step={STEP_H}
          value={shownH}
          aria-label="Hours from now"
          aria-valuetext={`in ${formatShortDuration(shownH * 3600)}`}
          onChange={(event) => change(changeScheduling({ ahead: event.target.valueAsNumber }), "replace")}
        />
      </label>
      <div className={styles.pair}>
        <Cells title="As it is" course={course} moment={is} others={null} pointed={pointed} setPointed={setPointed} />
        <Cells
          title="With the change"
          course={course}
          moment={then}
          others={others}
          pointed={pointed}
          setPointed={setPointed}
        />
      </div>
      <p className={styles.legend}>
        <i data-kind="running" /> runs now <i data-kind="waiting" /> waits now <i data-kind="free" /> free{" "}
        <i data-kind="closed" /> takes nothing new <i data-kind="other" /> another holder
        {course.left_out > 0 && <>; {formatCount(course.left_out)} more nodes are not drawn</>}
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
  readonly others: readonly (readonly boolean[])[] | null;
  readonly pointed: Pointed | null;
  setPointed(pointed: Pointed | null): void;
}

function Cells({ title, course, moment, others, pointed, setPointed }: CellsProps) {
  const place = useRef<HTMLDivElement>(null);
  const { width } = useSize(place);
  const ink = useInk();
  const layout = useMemo(() => layOutNodes(course.nodes, Math.max(60, width)), [course.nodes, width]);
  const marked = pointed ? (moment.holders[pointed.node]?.[pointed.gpu] ?? FREE) : FREE;
  const draw = useCallback(
    (pen: Pen) => paint(pen, ink, course, layout, moment, others, marked),
    [ink, course, layout, moment, others, marked],
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
  const label = `${title}: ${formatCount(moment.free)} GPUs free, ${formatCount(moment.scattered)} of them on nodes that are held in part`;
  return (
    <figure className={styles.figure}>
      <figcaption>
        <b>{title}</b> {formatCount(moment.free)} free
        {moment.scattered > 0 && `, ${formatCount(moment.scattered)} of them beside others on a node`}
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
      <p className={styles.said} role="status">
        {pointed ? say(course, moment, pointed) : "\u00a0"}
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
  others: readonly (readonly boolean[])[] | null,
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
    const columns = columnsOf(course.nodes[node]?.gpus ?? 0);
    row.forEach((holder, gpu) => {
      const [left, top] = [x + (gpu % columns) * STEP_PX, y + Math.floor(gpu / columns) * STEP_PX];
      pen.globalAlpha = holder >= 0 && !course.holders[holder]?.is_waiting ? 0.45 : 1;
      pen.fillStyle =
        (holder === FREE ? track : holder === CLOSED ? line : course.holders[holder]?.is_waiting ? accent : muted) ??
        "";
      if (holder >= 0 && holder === marked) [pen.globalAlpha, pen.fillStyle] = [1, text ?? ""];
      pen.fillRect(left, top, CELL_PX, CELL_PX);
      pen.globalAlpha = 1;
      if (others?.[node]?.[gpu]) {
        pen.strokeStyle = text ?? "";
        pen.strokeRect(left + 0.5, top + 0.5, CELL_PX - 1, CELL_PX - 1);
      }
    });
  }
}

function findPointed(course: WhatIfCourse, layout: CourseLayout, x: number, y: number): Pointed | null {
  for (const box of layout.boxes) {
    const gpus = course.nodes[box.node]?.gpus ?? 0;
    const columns = columnsOf(gpus);
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

function say(course: WhatIfCourse, moment: Moment, { node, gpu }: Pointed): string {
  const where = `${course.nodes[node]?.node ?? ""}, GPU ${gpu}`;
  const holder = moment.holders[node]?.[gpu];
  if (holder === undefined) return `${where}: not there`;
  if (holder === FREE) return `${where}: free`;
  if (holder === CLOSED) return `${where}: free, takes nothing new`;
  const who = course.holders[holder];
  const asks = who?.gpus ? ` of ${formatPlural(who.gpus, "GPU")}` : "";
  return `${where}: ${nativeId(who?.workload ?? "")}${asks}${who?.user ? `, ${who.user}` : ""}`;
}

function listHolders(course: WhatIfCourse, row: readonly number[]): string {
  const counts = new Map<string, number>();
  for (const holder of row) {
    const name = holder >= 0 ? (course.holders[holder]?.workload ?? "") : holder === CLOSED ? "closed" : "free";
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(", ");
}
