// Details of a workload in violation: the rules that it broke, their metrics over time, mutes and comments.

import { useMemo } from "react";
import type { WorkloadAnswer, WorkloadVerdicts } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { formatDuration, formatInstant } from "../../../base/time.ts";
import { SpanStrip } from "../../../charts/span-strip.tsx";
import { useWorkload } from "../../../data/queries.ts";
import { useRules, useWorkloadVerdicts } from "../../../data/rules.ts";
import { HangButton } from "../../../parts/hang/hang-button.tsx";
import { Card, Panel, PanelHead } from "../../../parts/panel/panel.tsx";
import { colorRules, toCssColor } from "../../../parts/rules/rule-colors.ts";
import { WorkloadRules } from "../../../parts/rules/workload-rules.tsx";
import { changeRulesPage, openView, select } from "../../../state/changes.ts";
import type { ViewName } from "../../../state/screen.ts";
import { useMoment } from "../../../state/use-moment.ts";
import { useChangeScreen, useViewNames } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { useNow } from "../../../widgets/clock-context.ts";
import { Facts } from "../../../widgets/facts.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { useEscape } from "../../../widgets/use-escape.ts";
import { formatHours } from "../words.ts";
import { CommentsCard } from "./comments-card.tsx";
import styles from "./details.module.css";
import { Life } from "./life.tsx";
import { MuteCard } from "./mute-card.tsx";

interface ViolationDetailsProps {
  readonly workload: string;
  /** The rule of the selected violation. */
  readonly rule: string | null;
}

export function ViolationDetails({ workload, rule }: ViolationDetailsProps) {
  const detail = useWorkload(workload);
  const verdicts = useWorkloadVerdicts(workload);
  const at = useMoment();
  const change = useChangeScreen();
  useEscape(() => change(select(null)));
  const shownRule = rule ?? verdicts.value?.violations[0]?.rule ?? null;
  return (
    <Panel key={workload}>
      <PanelHead
        kind="Workload"
        title={detail.value?.workload.name ?? workload}
        tag={detail.value && <Tag>{detail.value.workload.state.replaceAll("_", " ")}</Tag>}
        detail={detail.value ? <Owner workload={detail.value.workload} /> : null}
        actions={detail.value && <ViewButtons workload={workload} />}
      />
      <Frame source={detail} what="the workload">
        {(value) => (
          <Card label="Facts">
            <Facts facts={facts(value.workload)} />
          </Card>
        )}
      </Frame>
      {verdicts.value && verdicts.value.violations.length > 0 && (
        <Violations verdicts={verdicts.value} shownRule={shownRule} workload={detail.value?.workload ?? null} />
      )}
      {at === null && detail.value?.workload.ended_at === null && (
        <Card title="Rules now">
          <WorkloadRules workload={workload} />
        </Card>
      )}
      {shownRule !== null && verdicts.value && (
        <MuteCard key={`${workload} ${shownRule}`} workload={workload} rule={shownRule} />
      )}
      {verdicts.value && <CommentsCard workload={workload} />}
    </Panel>
  );
}

function Owner({ workload }: { workload: WorkloadAnswer }) {
  const { name, user, project, workload: id } = workload;
  return <>{[name && id, project, user && `by ${user}`].filter(Boolean).join(" · ")}</>;
}

const VIEW_BUTTONS: readonly { readonly view: ViewName; readonly title: string }[] = [
  { view: "overview", title: "Show in the overview" },
  { view: "diagnostics", title: "Diagnose" },
];

/** Buttons that open the workload in other views, if those exist. */
function ViewButtons({ workload }: { workload: string }) {
  const change = useChangeScreen();
  const views = useViewNames();
  return (
    <>
      {VIEW_BUTTONS.filter(({ view }) => views.includes(view)).map(({ view, title }) => (
        <Button key={view} onClick={() => change(openView(view))}>
          {title}
        </Button>
      ))}
      <HangButton workload={workload} />
    </>
  );
}

function facts(workload: WorkloadAnswer) {
  const { gpus_requested, resource_type, partition, run_s, started_at, ended_at } = workload;
  return [
    { name: "GPUs", value: gpuWords(gpus_requested, resource_type) },
    { name: "Partition", value: partition },
    { name: ended_at === null ? "Running for" : "Ran for", value: run_s === null ? null : formatDuration(run_s) },
    { name: "Started", value: started_at === null ? null : <RelativeTime at={started_at} /> },
    { name: "Ended", value: ended_at === null ? null : <RelativeTime at={ended_at} /> },
  ];
}

/** A resource type ends in the number of GPUs. */
function gpuWords(gpus: number, resourceType: string | null): string {
  const machine = resourceType?.replace(/-\d+$/, "");
  return machine ? `${formatCount(gpus)} × ${machine}` : formatCount(gpus);
}

interface ViolationsProps {
  readonly verdicts: WorkloadVerdicts;
  readonly shownRule: string | null;
  /** Null: unknown, or no longer stored. */
  readonly workload: WorkloadAnswer | null;
}

/** Each rule that the workload broke, and the metrics of the selected one. */
function Violations({ verdicts, shownRule, workload }: ViolationsProps) {
  const change = useChangeScreen();
  const now = useNow();
  const rules = useRules().value?.rules;
  const colors = useMemo(() => colorRules(rules ?? []), [rules]);
  const first = Math.min(...verdicts.spans.map(({ since }) => since));
  const startMs = Math.min(workload?.started_at ?? first, first);
  const endMs = workload?.ended_at ?? Math.max(now, ...verdicts.spans.map(({ until }) => until ?? 0));
  const rule = rules?.find(({ key }) => key === shownRule);
  const spansOf = (key: string) =>
    verdicts.spans
      .filter((span) => span.rule === key)
      .map(({ since, until }) => ({ fromMs: since, toMs: until ?? endMs }));
  return (
    <Card title="Violations">
      <ul className={styles.broken}>
        {verdicts.violations.map((violation) => (
          <li key={violation.rule}>
            <button
              type="button"
              data-row={true}
              aria-pressed={violation.rule === shownRule}
              onClick={() => change(changeRulesPage({ rule: violation.rule }), "replace")}
            >
              <span>{violation.rule_name}</span>
              <small>
                {formatHours(violation.gpu_hours)} GPU-h{violation.until === null ? " · now" : ""}
                {violation.mute ? " · muted" : ""}
              </small>
              <SpanStrip
                label={`${violation.rule_name}: ${formatInstant(violation.since, now)} – ${violation.until === null ? "now" : formatInstant(violation.until, now)}`}
                spans={spansOf(violation.rule)}
                startMs={startMs}
                endMs={endMs}
                color={toCssColor(colors, violation.rule)}
              />
            </button>
          </li>
        ))}
      </ul>
      {rule && workload?.started_at != null && (
        <Life
          workload={workload.workload}
          gpus={workload.gpus_requested}
          rule={rule}
          range={{ startMs, endMs: workload.ended_at }}
          endMs={endMs}
          shaded={spansOf(rule.key)}
          shade={toCssColor(colors, rule.key)}
        />
      )}
    </Card>
  );
}
