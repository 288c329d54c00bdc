// The rules that have no place in the bar, the most severe first, and those that are switched off.

import * as Popover from "@radix-ui/react-popover";
import type { RuleAnswer } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { severityRank } from "../../data/row-rules.ts";
import { PopupContent } from "../../widgets/popup.tsx";
import styles from "./rule-bar.module.css";
import { type RuleChipProps, RuleToggle } from "./rule-chip.tsx";
import { RuleMenu } from "./rule-menu.tsx";

interface MoreRulesProps {
  readonly folded: readonly RuleAnswer[];
  readonly off: readonly RuleAnswer[];
  /** Whether none has a place. */
  readonly isAll: boolean;
  chipProps(rule: RuleAnswer): RuleChipProps;
}

export function MoreRules({ folded, off, isAll, chipProps }: MoreRulesProps) {
  if (folded.length === 0 && off.length === 0) return null;
  const bySeverity = [...folded].sort((a, b) => severityRank(a.severity) - severityRank(b.severity));
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <button type="button" className={styles.add} aria-label={describe(folded.length, off.length, isAll)}>
          {label(folded.length, off.length, isAll)}
        </button>
      </Popover.Trigger>
      <PopupContent
        className={styles.popup}
        align="end"
        aria-label="More rules"
        onOpenAutoFocus={(event) => event.preventDefault()}
      >
        {bySeverity.length > 0 && (
          <ul>
            {bySeverity.map((rule) => (
              <Row key={rule.key} {...chipProps(rule)} />
            ))}
          </ul>
        )}
        {off.length > 0 && (
          <details open={folded.length === 0}>
            <summary>Switched off · {off.length}</summary>
            <ul>
              {off.map((rule) => (
                <OffRow key={rule.key} {...chipProps(rule)} />
              ))}
            </ul>
          </details>
        )}
      </PopupContent>
    </Popover.Root>
  );
}

function label(folded: number, off: number, isAll: boolean): string {
  if (folded === 0) return `${off} off`;
  return isAll ? formatPlural(folded, "rule") : `+${folded}`;
}

/** Begins with the label: who speaks to the page says what is seen. */
function describe(folded: number, off: number, isAll: boolean): string {
  const seen = label(folded, off, isAll);
  if (folded === 0) return `${seen}: rules that are switched off`;
  return [isAll ? seen : `${seen} more ${folded === 1 ? "rule" : "rules"}`, off > 0 ? `${off} switched off` : ""]
    .filter(Boolean)
    .join(", ");
}

function Row(props: RuleChipProps) {
  return (
    <li className={styles.row} data-hidden={!props.isShown || undefined}>
      <RuleToggle {...props} />
      <RuleMenu rule={props.rule} doing={props.doing} />
    </li>
  );
}

function OffRow({ rule, doing }: RuleChipProps) {
  return (
    <li className={styles.row} data-hidden>
      <button type="button" className={styles.toggle} data-tip={rule.text} onClick={() => doing.edit(rule)}>
        <i />
        <span>{rule.name}</span>
      </button>
      <button type="button" className={styles.on} onClick={() => doing.changes.setEnabled(rule, true)}>
        switch on
      </button>
      <RuleMenu rule={rule} doing={doing} />
    </li>
  );
}
