// Settings of the graph: rows, span classes, colors, merging, and the curve below each lane.

import {
  changeParallel,
  type Level,
  type Merge,
  type ParallelPage,
  SPAN_CLASSES,
  type SpanClass,
  type SpanColor,
} from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Segmented, type SegmentedOption } from "../../widgets/segmented.tsx";
import { CURVE_TITLES, type CurveName } from "./graph/curves.ts";
import { KIND_COLORS, type SpanKind } from "./graph/kinds.ts";
import styles from "./parallel.module.css";

const LEVEL_OPTIONS: readonly SegmentedOption<Level>[] = [
  { value: "stage", title: "Stages" },
  { value: "rank", title: "Ranks" },
  { value: "lane", title: "Streams" },
];

const COLOR_OPTIONS: readonly SegmentedOption<SpanColor>[] = [
  { value: "class", title: "Class" },
  { value: "wait", title: "Wait" },
  { value: "critical", title: "Critical" },
  { value: "slack", title: "Slack" },
];

const MERGE_OPTIONS: readonly SegmentedOption<Merge>[] = [
  { value: "gap", title: "By gap" },
  { value: "namespace", title: "By module" },
  { value: "none", title: "Off" },
];

const CLASS_TITLES: Readonly<Record<SpanClass, string>> = {
  phase: "Phases (forward, backward, …)",
  compute: "Kernels and operators",
  communication: "Communication",
  memory: "Copies",
  launch: "Launches",
  host: "Host operators",
  annotation: "Other annotations",
};

const CLASS_KINDS: Readonly<Record<SpanClass, SpanKind>> = {
  phase: "forward",
  compute: "compute",
  communication: "communication",
  memory: "memory",
  launch: "launch",
  host: "host",
  annotation: "annotation",
};

interface SettingsProps {
  readonly page: ParallelPage;
  /** The available curves. */
  readonly curves: readonly CurveName[];
  /** Whether FLOPs are estimated from shapes, not recorded by the profiler. */
  readonly isEstimated: boolean;
}

export function Settings({ page, curves, isEstimated }: SettingsProps) {
  const change = useChangeScreen();
  const set = (changes: Partial<ParallelPage>) => change(changeParallel(changes), "replace");
  return (
    <section className={styles.settings} aria-label="Graph settings">
      <h2>Rows</h2>
      <Segmented
        label="Rows"
        name="level"
        options={LEVEL_OPTIONS}
        value={page.level}
        onChange={(level) => set({ level, open: [] })}
      />
      <h2>Color by</h2>
      <Segmented
        label="Color by"
        name="paint"
        options={COLOR_OPTIONS}
        value={page.color}
        onChange={(color) => set({ color })}
      />
      <h2>Merge small spans</h2>
      <Segmented
        label="Merge small spans"
        name="merge"
        options={MERGE_OPTIONS}
        value={page.merge}
        onChange={(merge) => set({ merge })}
      />
      <h2>Span classes</h2>
      <div className={styles.classes}>
        {SPAN_CLASSES.map((spanClass) => (
          <label key={spanClass}>
            <input
              type="checkbox"
              checked={page.classes.includes(spanClass)}
              onChange={() => set({ classes: toggle(page.classes, spanClass) })}
            />
            <i data-swatch={true} style={{ background: KIND_COLORS[CLASS_KINDS[spanClass]] }} />
            {CLASS_TITLES[spanClass]}
          </label>
        ))}
      </div>
      {curves.length > 0 && (
        <>
          <h2>Curve below each lane</h2>
          <div className={styles.classes}>
            {[null, ...curves].map((name) => (
              <label key={name}>
                <input type="radio" name="curve" checked={page.curve === name} onChange={() => set({ curve: name })} />
                {name === null ? "None" : CURVE_TITLES[name]}
                {name === "flops" && isEstimated && (
                  <small data-tip="Estimated from the shapes of matrix products, convolutions and attention: the profiler recorded no FLOPs.">
                    estimated
                  </small>
                )}
              </label>
            ))}
          </div>
        </>
      )}
    </section>
  );
}

/** Keeps at least one class. */
function toggle(shown: readonly SpanClass[], toggled: SpanClass): readonly SpanClass[] {
  const next = SPAN_CLASSES.filter((spanClass) =>
    spanClass === toggled ? !shown.includes(toggled) : shown.includes(spanClass),
  );
  return next.length > 0 ? next : shown;
}
