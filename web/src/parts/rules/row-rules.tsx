// Which rules some units break or broke, with counts: for groups, and for past minutes.

import { formatCount, formatPlural } from "../../base/format.ts";
import { BROKEN, PAST, type UnitRules } from "../../data/row-rules.ts";
import styles from "./row-rules.module.css";
import { colorRules, toCssColor } from "./rule-colors.ts";

interface RowRulesProps {
  readonly rules: UnitRules;
  readonly rows: readonly number[];
}

export function RowRules({ rules, rows }: RowRulesProps) {
  const colors = colorRules(rules.all);
  const counted = rules.rules
    .map(({ rule, states }) => ({
      rule,
      broken: rows.reduce((sum, row) => sum + (states[row] === BROKEN ? 1 : 0), 0),
      past: rows.reduce((sum, row) => sum + (states[row] === PAST ? 1 : 0), 0),
    }))
    .filter(({ broken, past }) => broken + past > 0);
  if (counted.length === 0) return <p className={styles.none}>No rule is broken.</p>;
  return (
    <ul>
      {counted.map(({ rule, broken, past }) => (
        <li
          key={rule.key}
          className={styles.count}
          data-state={broken > 0 ? "broken" : "past"}
          data-tip={rule.text}
          style={{ "--rule": toCssColor(colors, rule.key) } as React.CSSProperties}
        >
          <i data-severity={rule.severity} />
          <span>{rule.name}</span>
          <small>
            {broken > 0 ? formatPlural(broken, "GPU") : ""}
            {broken > 0 && past > 0 && " · "}
            {past > 0 && `${formatCount(past)} in the past`}
          </small>
        </li>
      ))}
    </ul>
  );
}
