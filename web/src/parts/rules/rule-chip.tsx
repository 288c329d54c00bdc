// A rule in the bar: color, name, number of workloads that break it. A click shows or hides it in the picture.

import { useSortable } from "@dnd-kit/sortable";
import { CSS } from "@dnd-kit/utilities";
import type { KeyboardEvent } from "react";
import type { RuleAnswer, RuleCounts } from "../../api/generated.ts";
import { formatCount, MISSING } from "../../base/format.ts";
import styles from "./rule-bar.module.css";
import { RuleMenu, type RuleMenuActions } from "./rule-menu.tsx";
import { describeRule } from "./rule-words.ts";

export interface RuleChipProps {
  readonly rule: RuleAnswer;
  readonly color: string;
  readonly counts: RuleCounts | null;
  readonly isShown: boolean;
  /** Without its name. */
  readonly isBrief: boolean;
  readonly actions: RuleMenuActions;
  onToggle(): void;
  /** Whether the pointer or the keys are on it. */
  onPoint(isPointed: boolean): void;
}

export function RuleChip(props: RuleChipProps) {
  const { rule, actions } = props;
  const sortable = useSortable({ id: rule.key });
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : null;
    if (!event.altKey || step === null) return;
    actions.changes.move(rule.key, step);
    event.preventDefault();
  };
  return (
    <li
      ref={sortable.setNodeRef}
      className={styles.chip}
      data-hidden={!props.isShown || undefined}
      data-dragging={sortable.isDragging || undefined}
      style={{ transform: CSS.Translate.toString(sortable.transform), transition: sortable.transition }}
      onKeyDown={onKeyDown}
    >
      <RuleToggle {...props} listeners={sortable.listeners} />
      {!props.isBrief && <RuleMenu rule={rule} actions={actions} />}
    </li>
  );
}

interface RuleToggleProps extends RuleChipProps {
  /** For dragging. */
  readonly listeners?: ReturnType<typeof useSortable>["listeners"];
}

export function RuleToggle({ rule, color, counts, isShown, isBrief, onToggle, onPoint, listeners }: RuleToggleProps) {
  const count = counts === null ? MISSING : formatCount(counts.workloads);
  return (
    <button
      type="button"
      {...listeners}
      className={styles.toggle}
      aria-pressed={isShown}
      aria-label={isBrief ? `${rule.name} ${count}` : undefined}
      data-rule={rule.key}
      data-tip={describeRule(rule, counts)}
      onClick={onToggle}
      onPointerEnter={() => onPoint(true)}
      onPointerLeave={() => onPoint(false)}
      onFocus={() => onPoint(true)}
      onBlur={() => onPoint(false)}
    >
      <i data-severity={rule.severity} style={{ "--rule": color } as React.CSSProperties} />
      {!isBrief && <span>{rule.name}</span>}
      <b>{count}</b>
    </button>
  );
}
