// Summary of the violations: GPU-hours, workloads and rules now, mutes; and the time range.

import type { RuleAnswer, ViolationList } from "../../api/generated.ts";
import { formatCount, formatPlural, MISSING } from "../../base/format.ts";
import { changeRulesPage } from "../../state/changes.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { SPANS } from "../../state/violations.ts";
import { Segmented } from "../../widgets/segmented.tsx";
import { Figure, Strip } from "../../widgets/strip.tsx";
import { isHardwareViolation, type Narrowed } from "./narrow.ts";
import styles from "./rules.module.css";
import { formatHours, SPAN_WORDS } from "./words.ts";

interface StripProps {
  readonly violations: ViolationList | undefined;
  readonly rules: readonly RuleAnswer[];
  readonly narrowed: Narrowed | undefined;
}

export function RulesStrip({ violations, rules, narrowed }: StripProps) {
  const { rulesPage: page } = useScreen();
  const change = useChangeScreen();
  const all = violations?.violations ?? [];
  const open = all.filter(({ until }) => until === null);
  const workloads = new Set(open.filter((violation) => !isHardwareViolation(violation)).map(({ workload }) => workload))
    .size;
  const faultyTargets = new Set(open.filter(isHardwareViolation).map(({ workload }) => workload)).size;
  const brokenRules = new Set(open.map(({ rule }) => rule)).size;
  const muted = all.filter(({ mute }) => mute !== null).length;
  const enabled = rules.filter(({ is_enabled }) => is_enabled).length;
  const time = page.range ? "chosen time" : SPAN_WORDS[page.span];
  const isLoaded = violations !== undefined;
  return (
    <Strip>
      <Figure
        value={isLoaded ? formatHours(violations.gpu_hours) : MISSING}
        label={`GPU-hours in violation, ${time}`}
        tip="Held while at least one rule was broken; a GPU that broke two rules at once counts once"
      />
      <Figure
        value={isLoaded ? formatCount(workloads) : MISSING}
        label={workloads === 1 ? "workload breaks a rule now" : "workloads break rules now"}
        tip="Show current violations"
        onClick={() => change(changeRulesPage({ shows: "violations", state: "now" }))}
      />
      {faultyTargets > 0 && (
        <Figure
          value={formatCount(faultyTargets)}
          label={faultyTargets === 1 ? "node or source with a fault now" : "nodes or sources with faults now"}
          tip="GPU errors, missing GPUs, silent exporters, nodes out of service, unreachable schedulers"
          onClick={() => change(changeRulesPage({ shows: "violations", state: "now" }))}
        />
      )}
      <Figure
        className={styles.wide}
        value={
          <>
            {isLoaded ? formatCount(brokenRules) : MISSING}
            <small> of {formatCount(enabled)}</small>
          </>
        }
        label="rules broken now"
        tip={`Show rules; ${formatPlural(rules.length - enabled, "rule")} disabled`}
        onClick={() => change(changeRulesPage({ shows: "rules" }))}
      />
      {muted > 0 && (
        <Figure
          className={styles.wide}
          value={formatCount(muted)}
          label="muted"
          tip="Show muted violations"
          onClick={() => change(changeRulesPage({ shows: "violations", state: "muted" }))}
        />
      )}
      {narrowed && narrowed.rows.length < all.length && (
        <Figure
          className={styles.wide}
          value={
            <>
              {formatCount(narrowed.rows.length)}
              <small> of {formatCount(all.length)}</small>
            </>
          }
          label="violations shown"
          tip="Violations that match the filters"
        />
      )}
      <div className={styles.end}>
        <Segmented
          label="Time"
          name="span"
          value={page.span}
          options={SPANS.map((value) => ({ value, title: SPAN_WORDS[value] }))}
          onChange={(span) => change(changeRulesPage({ span, range: null }))}
        />
      </div>
    </Strip>
  );
}
