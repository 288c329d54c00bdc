// List of workloads to diagnose: those on several GPUs, rule violations first, then by size.

import { useMemo } from "react";
import { formatPlural } from "../../base/format.ts";
import { formatDuration } from "../../base/time.ts";
import { useWorkloads } from "../../data/queries.ts";
import { useWithRules } from "../../data/rules.ts";
import { useUnits } from "../../data/units.ts";
import { findBroken, orderWorkloads } from "../../data/worth-diagnosing.ts";
import { colorRules, toCssColor } from "../../parts/rules/rule-colors.ts";
import { diagnose } from "../../state/diagnostics.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Frame } from "../../widgets/frame.tsx";
import styles from "./chooser.module.css";

const RUNNING = ["running"] as const;
const MAX_WORKLOADS = 60;

export function Chooser() {
  const workloads = useWorkloads(RUNNING, true);
  const units = useWithRules(useUnits().value);
  const broken = useMemo(() => findBroken(units), [units]);
  const colors = useMemo(() => colorRules(units?.rules?.all ?? []), [units?.rules?.all]);
  const change = useChangeScreen();
  return (
    <main className={styles.page}>
      <header>
        <h1>Select a workload</h1>
        <p>
          Running workloads on several GPUs, those that break rules first. To open any other, even one that has ended,
          use the search above or its details in the overview.
        </p>
      </header>
      <Frame
        source={workloads}
        what="workloads"
        isEmpty={({ workloads: all }) => orderWorkloads(all, broken).length === 0}
        empty="No workload runs on more than one GPU now."
      >
        {({ workloads: all }) => (
          <ul className={styles.list}>
            {orderWorkloads(all, broken)
              .slice(0, MAX_WORKLOADS)
              .map((workload) => (
                <li key={workload.workload}>
                  <button type="button" onClick={() => change(diagnose(workload.workload))}>
                    <b>{workload.name ?? workload.workload}</b>
                    <span className={styles.rules}>
                      {(broken.get(workload.workload) ?? []).map((rule) => (
                        <i
                          key={rule.key}
                          data-tip={rule.name}
                          style={{ background: toCssColor(colors, rule.key) }}
                          role="img"
                          aria-label={`breaks ${rule.name}`}
                        />
                      ))}
                    </span>
                    <small>
                      {joinWords([
                        formatPlural(workload.gpus_requested, "GPU"),
                        formatPlural(workload.nodes.length, "node"),
                        formatDuration(workload.run_s),
                      ])}
                    </small>
                    <small>
                      {joinWords([
                        workload.name && workload.workload,
                        workload.project,
                        workload.user && `by ${workload.user}`,
                      ])}
                    </small>
                  </button>
                </li>
              ))}
          </ul>
        )}
      </Frame>
    </main>
  );
}

function joinWords(words: readonly (string | null)[]): string {
  return words.filter(Boolean).join(" · ");
}
