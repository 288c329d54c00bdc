// Above the picture of what waits: what a square counts, and waiting workloads or GPUs by resource type over the last day.

import { useMemo, useRef } from "react";
import type { Timeline, WaitingTrend } from "../../../api/generated.ts";
import { DAY_MS } from "../../../base/durations.ts";
import { formatPlural } from "../../../base/format.ts";
import { formatInstant } from "../../../base/time.ts";
import { Axis } from "../../../charts/axis.tsx";
import { useSize } from "../../../charts/canvas.tsx";
import { timeScale } from "../../../charts/scales.ts";
import { StackedTimeline, type TimelineSeries } from "../../../charts/stacked-timeline.tsx";
import { useTimeline } from "../../../data/queries.ts";
import { isOfQueue, type ShownUnits } from "../../../layout/grammar.ts";
import { toMinute, travelTo } from "../../../state/time.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { useNow } from "../../../widgets/clock-context.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import type { Arrangement } from "../editor/use-arrangement.ts";
import type { Editor } from "../editor/use-editor.ts";
import { colorNames, ownNameScheme } from "../picture/color/name-color.ts";
import { toCss } from "../picture/tokens.ts";
import styles from "./waiting-bar.module.css";

/** As the time bar asks for a day, so that both share one answer. */
const POINTS = 240;
const HEIGHT = 44;
/** Of a label of the axis, with its space. */
const LABEL_PX = 84;
const UNKNOWN = "unknown type";

const COUNTS: readonly { readonly value: ShownUnits; readonly title: string }[] = [
  { value: "requested", title: "GPUs" },
  { value: "waiting", title: "Workloads" },
];

interface WaitingBarProps {
  readonly arrangement: Arrangement | null;
  readonly editor: Editor;
}

export function WaitingBar({ arrangement, editor }: WaitingBarProps) {
  const timeline = useTimeline(DAY_MS, POINTS);
  if (arrangement === null || !isOfQueue(arrangement.view)) return null;
  const { view } = arrangement;
  return (
    <section className={styles.bar} aria-label="Waiting">
      <Segmented
        label="A square is one of the"
        name="waiting-counts"
        value={view.units}
        options={COUNTS}
        onChange={(units) => editor.edit({ ...view, units })}
      />
      <div className={styles.trend}>
        <Frame source={timeline} what="the trend" placeholder={<div style={{ height: HEIGHT }} />}>
          {(value) => <Trend timeline={value} isOfWorkloads={view.units === "waiting"} />}
        </Frame>
      </div>
    </section>
  );
}

function Trend({ timeline, isOfWorkloads }: { timeline: Timeline; isOfWorkloads: boolean }) {
  const change = useChangeScreen();
  const now = useNow();
  const series = useMemo(() => toSeries(timeline.waiting, isOfWorkloads), [timeline.waiting, isOfWorkloads]);
  const what = isOfWorkloads ? "workload" : "GPU";
  const startMs = timeline.time_ms[0] ?? timeline.start;
  const steps = Math.max(1, timeline.time_ms.length);
  const place = useRef<HTMLDivElement>(null);
  const { width } = useSize(place);
  return (
    <>
      <ul className={styles.legend} aria-label="Resource types">
        {series.map(({ key, title, color, values }) => (
          <li key={key}>
            <i style={{ background: color }} />
            {title} <b>{values.at(-1) ?? 0}</b>
          </li>
        ))}
      </ul>
      <StackedTimeline
        label={`Waiting ${what}s by resource type over the last 24 hours`}
        startMs={startMs}
        stepMs={timeline.step_ms}
        steps={steps}
        series={series}
        range={null}
        height={HEIGHT}
        sayTime={(timeMs) => formatInstant(timeMs, now)}
        sayCount={(count) => formatPlural(count, what)}
        none="nothing waited"
        onRange={(range) => range && change(travelTo(toMinute(Math.min(range.toMs, now))))}
      />
      <div ref={place}>
        <Axis
          scale={timeScale(startMs, startMs + timeline.step_ms * steps, width / LABEL_PX)}
          side="below"
          length={width}
        />
      </div>
    </>
  );
}

function toSeries(trends: readonly WaitingTrend[], isOfWorkloads: boolean): readonly TimelineSeries[] {
  const names = trends.map(({ resource_type }) => resource_type);
  const colors = colorNames(names, ownNameScheme("resource_type", names));
  return trends.map(({ resource_type, workloads, gpus }, at) => ({
    key: resource_type ?? UNKNOWN,
    title: resource_type ?? UNKNOWN,
    color: resource_type === null ? "var(--faint)" : toCss(colors[at] ?? 0),
    values: isOfWorkloads ? workloads : gpus,
  }));
}
