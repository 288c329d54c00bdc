// The rules in one row: what fits of it, the most severe first to stay; the rest, and what is switched off, behind a button.

import { closestCenter, DndContext, type DragEndEvent, PointerSensor, useSensor, useSensors } from "@dnd-kit/core";
import { horizontalListSortingStrategy, SortableContext } from "@dnd-kit/sortable";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import type { RuleAnswer, RuleCounts } from "../../api/generated.ts";
import { formatCount } from "../../base/format.ts";
import { severityRank } from "../../data/row-rules.ts";
import { useRules } from "../../data/rules.ts";
import { Toast } from "../../widgets/toast.tsx";
import { RuleEditor } from "./editor/rule-editor.tsx";
import { foldRow } from "./fold.ts";
import { MoreRules } from "./more-rules.tsx";
import styles from "./rule-bar.module.css";
import { RuleChip } from "./rule-chip.tsx";
import { colorRules, toCssColor } from "./rule-colors.ts";
import type { RuleDoing } from "./rule-menu.tsx";
import { useRuleChanges } from "./use-rule-changes.ts";

interface RuleBarProps {
  /** Keys of rules that the picture does not show. */
  readonly hidden: readonly string[];
  /** What the rules say at a past minute; null: what they say now. */
  readonly past: ReadonlyMap<string, RuleCounts> | null;
  onToggle(key: string): void;
  onPoint(key: string | null): void;
  onFilter(key: string): void;
  onOpenPage?: (key: string) => void;
}

/** Pixels, as rule-bar.module.css has them. */
const CHIP_GAP = 6;
const CHIP_PADDING = 54;
const LONGEST_NAME = 132;
const MORE_WIDTH = 50;
const ADD_WIDTH = 66;

export function RuleBar({ hidden, past, onToggle, onPoint, onFilter, onOpenPage }: RuleBarProps) {
  const { value: list, problem } = useRules();
  const rules = list?.rules ?? NO_RULES;
  const changes = useRuleChanges(rules);
  const [edited, setEdited] = useState<RuleAnswer | "new" | null>(null);
  const [place, width] = useRoom();
  const sensors = useSensors(useSensor(PointerSensor, { activationConstraint: { distance: 6 } }));
  const colors = useMemo(() => colorRules(rules), [rules]);
  const enabled = useMemo(() => rules.filter((rule) => rule.is_enabled), [rules]);
  const countsOf = (rule: RuleAnswer) => (past ? (past.get(rule.key) ?? null) : rule.counts);
  const shown = foldRow(
    enabled.map((rule) => widthOf(rule, countsOf(rule))),
    enabled.map(({ severity }) => severityRank(severity)),
    width - ADD_WIDTH - (enabled.length < rules.length ? MORE_WIDTH : 0),
    CHIP_GAP,
    enabled.length < rules.length ? 0 : MORE_WIDTH,
  ).flatMap((at) => enabled[at] ?? []);
  const doing: RuleDoing = { changes, edit: setEdited, filter: onFilter, openPage: onOpenPage };
  const chipProps = (rule: RuleAnswer) => ({
    rule,
    color: toCssColor(colors, rule.key),
    counts: countsOf(rule),
    isShown: !hidden.includes(rule.key),
    doing,
    onToggle: () => onToggle(rule.key),
    onPoint: (isPointed: boolean) => onPoint(isPointed ? rule.key : null),
  });
  const onDragEnd = ({ active, over }: DragEndEvent) => {
    if (over !== null && over.id !== active.id) changes.moveTo(String(active.id), String(over.id));
  };
  return (
    <section ref={place} className={styles.bar} aria-label="Rules">
      <DndContext sensors={sensors} collisionDetection={closestCenter} onDragEnd={onDragEnd}>
        <SortableContext items={shown.map(({ key }) => key)} strategy={horizontalListSortingStrategy}>
          <ul className={styles.chips}>
            {shown.map((rule) => (
              <RuleChip key={rule.key} {...chipProps(rule)} />
            ))}
          </ul>
        </SortableContext>
      </DndContext>
      <MoreRules
        folded={enabled.filter((rule) => !shown.includes(rule))}
        off={rules.filter((rule) => !rule.is_enabled)}
        isAll={shown.length === 0}
        chipProps={chipProps}
      />
      <button
        type="button"
        className={styles.add}
        data-tip={problem ? problem.message : "Define a rule"}
        onClick={() => setEdited("new")}
      >
        + rule
      </button>
      <Toast notice={changes.notice} onDismiss={changes.dismiss} />
      {edited && (
        <RuleEditor
          key={edited === "new" ? "" : edited.key}
          rule={edited === "new" ? null : edited}
          rules={rules}
          onRemove={changes.remove}
          onClose={() => setEdited(null)}
        />
      )}
    </section>
  );
}

const NO_RULES: readonly RuleAnswer[] = [];

function useRoom() {
  const place = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  return [place, width] as const;
}

let ruler: CanvasRenderingContext2D | null = null;

/** Measured as text, not on the page: what does not fit is never there. */
function widthOf(rule: RuleAnswer, counts: RuleCounts | null): number {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (ruler === null) return LONGEST_NAME + CHIP_PADDING;
  ruler.font = '560 12px "Inter Variable", system-ui, sans-serif';
  const name = Math.min(LONGEST_NAME, ruler.measureText(rule.name).width);
  return Math.ceil(name + ruler.measureText(formatCount(counts?.workloads ?? null)).width) + CHIP_PADDING;
}
