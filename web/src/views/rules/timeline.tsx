// GPUs in violation over time, by rule; drawing a range filters the list by time.

import { useMemo } from "react";
import type { RuleAnswer, RuleTimeline } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { formatInstant } from "../../base/time.ts";
import { StackedTimeline, sumSteps, type TimelineSeries } from "../../charts/stacked-timeline.tsx";
import { useViolationTimeline } from "../../data/violations.ts";
import { type RuleColors, toCssColor } from "../../parts/rules/rule-colors.ts";
import { changeRulesPage } from "../../state/changes.ts";
import { useMoment } from "../../state/use-moment.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { type RulesPage, toTimeRange } from "../../state/violations.ts";
import { useNow } from "../../widgets/clock-context.ts";
import { Frame } from "../../widgets/frame.tsx";
import { severityOrder } from "./narrow.ts";
import styles from "./rules.module.css";

interface TimelineProps {
  readonly page: RulesPage;
  readonly rules: readonly RuleAnswer[];
  readonly colors: RuleColors;
}

const HEIGHT = 96;

export function Timeline({ page, rules, colors }: TimelineProps) {
  const timeline = useViolationTimeline(page.span);
  return (
    <section className={styles.timeline} aria-label="Violations over time">
      <Frame source={timeline} what="the timeline" placeholder={<div style={{ height: HEIGHT + 46 }} />}>
        {(value) => <Chart timeline={value} page={page} rules={rules} colors={colors} />}
      </Frame>
    </section>
  );
}

function Chart({ timeline, page, rules, colors }: TimelineProps & { timeline: RuleTimeline }) {
  const change = useChangeScreen();
  const at = useMoment();
  const now = useNow();
  const series = useMemo(() => toSeries(timeline, page, rules, colors), [timeline, page, rules, colors]);
  const { start, step_ms: stepMs } = timeline;
  const steps = Math.max(1, ...Object.values(timeline.gpus).map((line) => line.length));
  const maxGpus = Math.max(0, ...sumSteps(series, steps));
  const { range } = page;
  const formatTime = (timeMs: number) => formatInstant(timeMs, now);
  return (
    <>
      <div className={styles.timelineHead}>
        <h2>GPUs in violation</h2>
        {range ? (
          <>
            <small>
              {formatTime(range.fromMs)} – {formatTime(range.toMs)}
            </small>
            <button type="button" onClick={() => change(changeRulesPage({ range: null }))}>
              Show all
            </button>
          </>
        ) : (
          <small>{maxGpus > 0 ? "drag to select a time range" : "none in this time range"}</small>
        )}
      </div>
      <StackedTimeline
        label="GPUs in violation over time, by rule"
        startMs={start}
        stepMs={stepMs}
        steps={steps}
        series={series}
        range={range}
        height={HEIGHT}
        sayTime={formatTime}
        sayCount={(count) => formatPlural(count, "GPU")}
        none="nothing broken"
        onRange={(drawn, isGrown) =>
          change(
            changeRulesPage({ range: drawn && toTimeRange(drawn.fromMs, drawn.toMs) }),
            isGrown ? "replace" : "push",
          )
        }
      />
      <div className={styles.axis}>
        <span>{formatTime(start)}</span>
        <span>{at === null ? "now" : formatTime(at)}</span>
      </div>
    </>
  );
}

/** Rules that were broken; the most severe at the bottom, where differences are easiest to compare. */
function toSeries(
  timeline: RuleTimeline,
  page: RulesPage,
  rules: readonly RuleAnswer[],
  colors: RuleColors,
): readonly TimelineSeries[] {
  return rules
    .filter(({ key }) => page.rules.length === 0 || page.rules.includes(key))
    .filter(({ severity }) => page.severities.length === 0 || page.severities.includes(severity))
    .filter(({ key }) => timeline.gpus[key]?.some((count) => count > 0))
    .toSorted((a, b) => severityOrder(a.severity) - severityOrder(b.severity))
    .map(({ key, name }) => ({
      key,
      title: name,
      color: toCssColor(colors, key),
      values: timeline.gpus[key] ?? [],
    }));
}
