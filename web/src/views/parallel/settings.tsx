// How the graph is drawn: rows, classes of spans, colors, merging, and which small curve stands below each lane.

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
  { value: "none", title: "Not" },
];

const CLASS_TITLES: Readonly<Record<SpanClass, string>> = {
  phase: "phases (forward, backward, …)",
  compute: "kernels and operators",
  communication: "communication",
  memory: "copies",
  launch: "launches",
  host: "host operators",
  annotation: "other annotations",
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
  /** Which there are. */
  readonly curves: readonly CurveName[];
  /** Whether FLOPs come from shapes, not from the profiler itself. */
  readonly isEstimated: boolean;
}

export function Settings({ page, curves, isEstimated }: SettingsProps) {
  const change = useChangeScreen();
  const set = (changes: Partial<ParallelPage>) => change(changeParallel(changes), "replace");
  return (
    <section className={styles.settings} aria-label="How it is drawn">
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
      <h2>Shown</h2>
      <div className={styles.classes}>
        {SPAN_CLASSES.map((each) => (
          <label key={each}>
            <input
              type="checkbox"
              checked={page.classes.includes(each)}
              onChange={() => set({ classes: toggle(page.classes, each) })}
            />
            <i data-swatch={true} style={{ background: KIND_COLORS[CLASS_KINDS[each]] }} />
            {CLASS_TITLES[each]}
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
                {name === null ? "none" : CURVE_TITLES[name]}
                {name === "flops" && isEstimated && (
                  <small data-tip="From the shapes of matrix products, convolutions and attention: the profiler recorded none itself.">
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

/** At least one class is drawn. */
function toggle(shown: readonly SpanClass[], one: SpanClass): readonly SpanClass[] {
  const next = SPAN_CLASSES.filter((each) => (each === one ? !shown.includes(one) : shown.includes(each)));
  return next.length > 0 ? next : shown;
}
