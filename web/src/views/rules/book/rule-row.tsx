// One rule of the list: a switch, its text, its current violations, and its reason on request.

import { useId, useState } from "react";
import type { RuleAnswer } from "../../../api/generated.ts";
import { useMay } from "../../../data/access.ts";
import { type RuleColors, toCssColor } from "../../../parts/rules/rule-colors.ts";
import { describeBroken, describeCounts } from "../../../parts/rules/rule-words.ts";
import type { RuleChanges } from "../../../parts/rules/use-rule-changes.ts";
import { openRule } from "../../../state/changes.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Button, IconButton } from "../../../widgets/button.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { SEVERITY_TONES } from "../words.ts";
import styles from "./book.module.css";

interface RuleRowProps {
  readonly rule: RuleAnswer;
  readonly colors: RuleColors;
  readonly changes: RuleChanges;
  readonly isFirst: boolean;
  readonly isLast: boolean;
  onEdit(): void;
}

export function RuleRow({ rule, colors, changes, isFirst, isLast, onEdit }: RuleRowProps) {
  const [isOpen, setOpen] = useState(false);
  const change = useChangeScreen();
  const id = useId();
  const mayChange = useMay("operator");
  const { key, name, text, severity, is_enabled: isEnabled } = rule;
  const canReset = !rule.is_shipped || rule.is_changed;
  return (
    <li className={styles.rule} data-off={!isEnabled || undefined}>
      <input
        type="checkbox"
        role="switch"
        className={styles.switch}
        aria-label={`Enable ${name}`}
        data-tip={isEnabled ? "Disable" : "Enable"}
        checked={isEnabled}
        aria-checked={isEnabled}
        disabled={!mayChange}
        onChange={() => changes.setEnabled(rule, !isEnabled)}
      />
      <i data-swatch={true} data-severity={severity} style={{ background: toCssColor(colors, key) }} />
      <button
        type="button"
        className={styles.summary}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        <span className={styles.name}>
          <b title={name}>{name}</b>
          <Tag tone={SEVERITY_TONES[severity]}>{severity}</Tag>
          <Origin rule={rule} />
        </span>
        <code title={text}>{text}</code>
      </button>
      <button
        type="button"
        className={styles.counts}
        data-tip={`${describeCounts(rule.counts, rule.subject)}; show its violations`}
        disabled={!isEnabled}
        onClick={() => change(openRule(key))}
      >
        {isEnabled ? summarizeCounts(rule) : "off"}
      </button>
      {mayChange && (
        <span className={styles.actions}>
          <IconButton icon="up" label={`Move ${name} up`} disabled={isFirst} onClick={() => changes.move(key, -1)} />
          <IconButton icon="down" label={`Move ${name} down`} disabled={isLast} onClick={() => changes.move(key, 1)} />
          <Button onClick={onEdit} aria-label={`Edit ${name}`}>
            Edit
          </Button>
        </span>
      )}
      {isOpen && (
        <div id={id} className={styles.explanation}>
          {rule.reason && <p>{rule.reason}</p>}
          {rule.advice && <p>Advice to the user: {rule.advice}</p>}
          <ul>
            {rule.words.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
          {canReset && mayChange && (
            <Button onClick={() => changes.remove(rule)}>{rule.is_shipped ? "Reset to default" : "Delete"}</Button>
          )}
        </div>
      )}
    </li>
  );
}

function summarizeCounts({ counts, subject }: RuleAnswer): string {
  if (counts === null) return "not evaluated yet";
  if (counts.workloads === 0) return "no violations";
  return describeBroken(counts, subject);
}

function Origin({ rule: { is_shipped, is_changed, owner } }: { rule: RuleAnswer }) {
  const origin = is_shipped ? (is_changed ? "built-in, changed" : "built-in") : owner ? `by ${owner}` : "custom";
  return <small>{origin}</small>;
}
