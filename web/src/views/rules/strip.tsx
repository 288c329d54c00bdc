// The violations in one line: what they cost, who breaks rules now, what is muted; and of which time.

import type { RuleAnswer, ViolationList } from "../../api/generated.ts";
import { formatCount, formatPlural, MISSING } from "../../base/format.ts";
import { changeRulesPage } from "../../state/changes.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { SPANS } from "../../state/violations.ts";
import { Segmented } from "../../widgets/segmented.tsx";
import { Figure, Strip } from "../../widgets/strip.tsx";
import { isOfHardware, type Narrowed } from "./narrow.ts";
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
  const workloads = new Set(open.filter((each) => !isOfHardware(each)).map(({ workload }) => workload)).size;
  const faulty = new Set(open.filter(isOfHardware).map(({ workload }) => workload)).size;
  const broken = new Set(open.map(({ rule }) => rule)).size;
  const muted = all.filter(({ mute }) => mute !== null).length;
  const enabled = rules.filter(({ is_enabled }) => is_enabled).length;
  const time = page.range ? "chosen time" : SPAN_WORDS[page.span];
  const known = violations !== undefined;
  return (
    <Strip>
      <Figure
        value={known ? formatHours(violations.gpu_hours) : MISSING}
        label={`GPU-hours in violation, ${time}`}
        tip="Held while at least one rule was broken; a GPU that broke two rules at once counts once"
      />
      <Figure
        value={known ? formatCount(workloads) : MISSING}
        label={workloads === 1 ? "workload breaks a rule now" : "workloads break rules now"}
        tip="Show what goes on"
        onClick={() => change(changeRulesPage({ shows: "violations", state: "now" }))}
      />
      {faulty > 0 && (
        <Figure
          value={formatCount(faulty)}
          label={faulty === 1 ? "node or source with a fault now" : "nodes or sources with faults now"}
          tip="Errors of GPUs, missing GPUs, silent exporters, nodes out of service, schedulers that are away"
          onClick={() => change(changeRulesPage({ shows: "violations", state: "now" }))}
        />
      )}
      <Figure
        className={styles.wide}
        value={
          <>
            {known ? formatCount(broken) : MISSING}
            <small> of {formatCount(enabled)}</small>
          </>
        }
        label="rules broken now"
        tip={`Show the rules; ${formatPlural(rules.length - enabled, "rule")} switched off`}
        onClick={() => change(changeRulesPage({ shows: "rules" }))}
      />
      {muted > 0 && (
        <Figure
          className={styles.wide}
          value={formatCount(muted)}
          label="muted"
          tip="Show what nobody is alerted of"
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
          tip="What the filters leave"
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
