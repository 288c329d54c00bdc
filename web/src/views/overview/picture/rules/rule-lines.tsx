// The rules that a unit or a group breaks or broke, as lines of a tooltip.

import { formatCount } from "../../../../base/format.ts";
import { toCss } from "../tokens.ts";
import { countIn, listBroken, listStates, type RuleMarks } from "./rule-marks.ts";
import styles from "./rule-tip.module.css";

/** A tip is read at a glance. */
const MOST_LINES = 4;

interface Line {
  readonly rule: number;
  readonly isPast: boolean;
  readonly detail: string;
}

export function UnitRuleLines({ marks, row }: { marks: RuleMarks; row: number }) {
  const lines = listStates(marks, row).map(({ rule, isPast }) => ({ rule, isPast, detail: isPast ? "past" : "" }));
  return <Lines marks={marks} lines={lines} />;
}

export function GroupRuleLines({ marks, group, units }: { marks: RuleMarks; group: number; units: number }) {
  const lines = listBroken(marks, group).map((rule) => ({
    rule,
    isPast: false,
    detail: `${formatCount(countIn(marks, rule, group))} of ${formatCount(units)}`,
  }));
  return <Lines marks={marks} lines={lines} />;
}

function Lines({ marks, lines }: { marks: RuleMarks; lines: readonly Line[] }) {
  if (lines.length === 0) return null;
  return (
    <ul className={styles.lines}>
      {lines.slice(0, MOST_LINES).map(({ rule, isPast, detail }) => (
        <li key={rule} style={{ "--rule": toCss(marks.rules[rule]?.color ?? 0) } as React.CSSProperties}>
          <i data-past={isPast || undefined} data-severity={marks.rules[rule]?.severity} />
          <span>{marks.rules[rule]?.name}</span>
          <small>{detail}</small>
        </li>
      ))}
      {lines.length > MOST_LINES && (
        <li>
          <small>and {lines.length - MOST_LINES} more</small>
        </li>
      )}
    </ul>
  );
}
