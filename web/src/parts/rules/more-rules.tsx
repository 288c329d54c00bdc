// The rules that do not fit into the bar, broken ones first, and disabled rules.

import * as Popover from "@radix-ui/react-popover";
import type { RuleAnswer } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { PopupContent } from "../../widgets/popup.tsx";
import styles from "./rule-bar.module.css";
import { type RuleChipProps, RuleToggle } from "./rule-chip.tsx";
import { RuleMenu } from "./rule-menu.tsx";

interface MoreRulesProps {
  readonly folded: readonly RuleAnswer[];
  readonly off: readonly RuleAnswer[];
  /** How many of the folded are broken. */
  readonly broken: number;
  /** Whether none has a place. */
  readonly isAll: boolean;
  chipProps(rule: RuleAnswer): RuleChipProps;
}

export function MoreRules({ folded, off, broken, isAll, chipProps }: MoreRulesProps) {
  if (folded.length === 0 && off.length === 0) return null;
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <button type="button" className={styles.add} aria-label={describe(folded.length, off.length, broken, isAll)}>
          {label(folded.length, off.length, broken, isAll)}
        </button>
      </Popover.Trigger>
      <PopupContent
        className={styles.popup}
        align="end"
        aria-label="More rules"
        onOpenAutoFocus={(event) => event.preventDefault()}
      >
        {folded.length > 0 && (
          <ul>
            {folded.map((rule) => (
              <Row key={rule.key} {...chipProps(rule)} />
            ))}
          </ul>
        )}
        {off.length > 0 && (
          <details open={folded.length === 0}>
            <summary>Disabled · {off.length}</summary>
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

function label(folded: number, off: number, broken: number, isAll: boolean): string {
  if (folded === 0) return `${off} disabled`;
  if (isAll) return formatPlural(folded, "rule");
  return broken > 0 ? `+${broken} broken` : `+${folded}`;
}

/** The accessible name begins with the visible label, so that voice control finds it. */
function describe(folded: number, off: number, broken: number, isAll: boolean): string {
  const text = label(folded, off, broken, isAll);
  if (folded === 0) return `${text}: rules that are not evaluated`;
  const more = isAll ? "" : `${formatPlural(folded, "more rule")}`;
  return [text, more, isAll && broken > 0 ? `${broken} broken` : "", off > 0 ? `${off} disabled` : ""]
    .filter(Boolean)
    .join(", ");
}

function Row(props: RuleChipProps) {
  return (
    <li className={styles.row} data-hidden={!props.isShown || undefined}>
      <RuleToggle {...props} />
      <RuleMenu rule={props.rule} actions={props.actions} />
    </li>
  );
}

function OffRow({ rule, actions }: RuleChipProps) {
  return (
    <li className={styles.row} data-hidden>
      <button type="button" className={styles.toggle} data-tip={rule.text} onClick={() => actions.edit(rule)}>
        <i />
        <span>{rule.name}</span>
      </button>
      <button type="button" className={styles.on} onClick={() => actions.changes.setEnabled(rule, true)}>
        enable
      </button>
      <RuleMenu rule={rule} actions={actions} />
    </li>
  );
}
