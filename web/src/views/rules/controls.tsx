// Filters of violations: state, rule and severity; and users and projects ranked by GPU-hours in violation.

import { useMemo, useState } from "react";
import type { RuleAnswer, Severity, ViolationList } from "../../api/generated.ts";
import { formatCount, formatPlural } from "../../base/format.ts";
import { type RankedBar, RankedBars } from "../../charts/ranked-bars.tsx";
import { type RuleColors, toCssColor } from "../../parts/rules/rule-colors.ts";
import { changeRulesPage } from "../../state/changes.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { isNarrowed, type RulesPage, SEVERITIES, toggled, VIOLATION_STATES } from "../../state/violations.ts";
import { Segmented } from "../../widgets/segmented.tsx";
import { Tag } from "../../widgets/tag.tsx";
import { type Narrowed, type Sum, sumGpuHours } from "./narrow.ts";
import styles from "./rules.module.css";
import { formatHours, SEVERITY_TONES, STATE_WORDS, UNKNOWN_NAME } from "./words.ts";

interface ControlsProps {
  readonly page: RulesPage;
  readonly rules: readonly RuleAnswer[];
  readonly colors: RuleColors;
  readonly violations: ViolationList | undefined;
  readonly narrowed: Narrowed | undefined;
}

export function Controls({ page, rules, colors, violations, narrowed }: ControlsProps) {
  const change = useChangeScreen();
  const listedRules = useMemo(() => listRules(rules, violations, page.rules), [rules, violations, page.rules]);
  const counts = narrowed?.counts;
  return (
    <div className={styles.controls}>
      <section className={styles.facet} aria-label="State">
        <h2>Violations</h2>
        <Segmented
          label="State"
          name="state"
          value={page.state}
          options={VIOLATION_STATES.map((value) => ({ value, title: STATE_WORDS[value] }))}
          onChange={(state) => change(changeRulesPage({ state, shows: "violations" }))}
        />
      </section>
      <Owners page={page} violations={violations} narrowed={narrowed} />
      <section className={styles.facet} aria-label="Rules">
        <h2>Rules</h2>
        <ul className={styles.rules}>
          {listedRules.map(({ key, name, severity }) => {
            const count = counts?.rule.get(key) ?? 0;
            return (
              <li key={key}>
                <label data-none={(counts && count === 0) || undefined}>
                  <input
                    type="checkbox"
                    checked={page.rules.includes(key)}
                    onChange={() => change(changeRulesPage({ rules: toggled(page.rules, key), shows: "violations" }))}
                  />
                  <i data-swatch={true} data-severity={severity} style={{ background: toCssColor(colors, key) }} />
                  <span title={name}>{name}</span>
                  <small>{counts && formatCount(count)}</small>
                </label>
              </li>
            );
          })}
        </ul>
      </section>
      <section className={styles.facet} aria-label="Severity">
        <h2>Severity</h2>
        <ul className={styles.rules}>
          {SEVERITIES.map((severity: Severity) => {
            const count = counts?.severity.get(severity) ?? 0;
            return (
              <li key={severity}>
                <label data-none={(counts && count === 0) || undefined}>
                  <input
                    type="checkbox"
                    checked={page.severities.includes(severity)}
                    onChange={() =>
                      change(
                        changeRulesPage({
                          severities: SEVERITIES.filter((value) => toggled(page.severities, severity).includes(value)),
                          shows: "violations",
                        }),
                      )
                    }
                  />
                  <span className={styles.severity}>
                    <Tag tone={SEVERITY_TONES[severity]}>{severity}</Tag>
                  </span>
                  <small>{counts && formatCount(count)}</small>
                </label>
              </li>
            );
          })}
        </ul>
      </section>
    </div>
  );
}

interface ListedRule {
  readonly key: string;
  readonly name: string;
  /** Undefined for a rule that only a link listedRules. */
  readonly severity: Severity | undefined;
}

/** All rules in their order, then other rules that were broken or are selected. */
function listRules(
  rules: readonly RuleAnswer[],
  violations: ViolationList | undefined,
  chosen: readonly string[],
): readonly ListedRule[] {
  const listed = new Map<string, ListedRule>();
  const add = (rule: ListedRule) => !listed.has(rule.key) && listed.set(rule.key, rule);
  for (const { key, name, severity, is_enabled } of rules) {
    if (is_enabled || chosen.includes(key)) add({ key, name, severity });
  }
  for (const { rule, rule_name, severity } of violations?.violations ?? []) {
    add({ key: rule, name: rule_name, severity });
  }
  for (const key of chosen) add({ key, name: key, severity: undefined });
  return [...listed.values()];
}

type OwnersProps = Pick<ControlsProps, "page" | "violations" | "narrowed">;

function Owners({ page, violations, narrowed }: OwnersProps) {
  const [by, setBy] = useState<"user" | "project">("user");
  const change = useChangeScreen();
  const bars = useMemo(() => rankOwners(by, page, violations, narrowed), [by, page, violations, narrowed]);
  const chosen = by === "user" ? page.users : page.projects;
  return (
    <section className={styles.facet} aria-label="GPU-hours">
      <div className={styles.head}>
        <h2>GPU-hours</h2>
        <Segmented<"user" | "project">
          label="GPU-hours by"
          name="owners"
          value={by}
          options={[
            { value: "user", title: "User" },
            { value: "project", title: "Project" },
          ]}
          onChange={setBy}
        />
      </div>
      {violations && bars.length === 0 && <small className={styles.none}>None.</small>}
      <RankedBars
        label={`GPU-hours in violation by ${by}`}
        bars={bars}
        chosen={chosen}
        onToggle={(name) => {
          const names = toggled(chosen, name);
          change(changeRulesPage({ shows: "violations", ...(by === "user" ? { users: names } : { projects: names }) }));
        }}
      />
    </section>
  );
}

/** Without filters the sums of the server, which count a GPU once; else sums of the rows. */
function rankOwners(
  by: "user" | "project",
  page: RulesPage,
  violations: ViolationList | undefined,
  narrowed: Narrowed | undefined,
): readonly RankedBar[] {
  if (!violations || !narrowed) return [];
  const isUnfiltered = !isNarrowed({ ...page, ...(by === "user" ? { users: [] } : { projects: [] }) });
  const shares = by === "user" ? violations.users : violations.projects;
  const sums: readonly Sum[] = isUnfiltered
    ? shares.map(({ name, gpu_hours, workloads }) => ({
        name: name ?? "",
        gpuHours: gpu_hours,
        workloads,
        isAtLeast: false,
      }))
    : sumGpuHours(by === "user" ? narrowed.anyUser : narrowed.anyProject, (row) => row[by]);
  return sums.map(({ name, gpuHours, workloads, isAtLeast }) => ({
    key: name,
    title: name === "" ? UNKNOWN_NAME : name,
    value: gpuHours,
    words: `${isAtLeast ? "≥\u00a0" : ""}${formatHours(gpuHours)}`,
    detail: formatPlural(workloads, "workload"),
  }));
}
