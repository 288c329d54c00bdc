// The rules in one line, broken ones first; those that do not fit, and disabled ones, are in a popup.

import { closestCenter, DndContext, type DragEndEvent, PointerSensor, useSensor, useSensors } from "@dnd-kit/core";
import { rectSortingStrategy, SortableContext } from "@dnd-kit/sortable";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import type { RuleAnswer, RuleCounts } from "../../api/generated.ts";
import { formatCount } from "../../base/format.ts";
import { useMay } from "../../data/access.ts";
import { useRules } from "../../data/rules.ts";
import { Icon } from "../../widgets/icon.tsx";
import { Toast } from "../../widgets/toast.tsx";
import { type BarRule, fitBar, isBroken, orderBar } from "./bar-order.ts";
import { type EditedRule, EditedRuleEditor } from "./edited-rule.tsx";
import { MoreRules } from "./more-rules.tsx";
import styles from "./rule-bar.module.css";
import { RuleChip } from "./rule-chip.tsx";
import { colorRules, toCssColor } from "./rule-colors.ts";
import type { RuleMenuActions } from "./rule-menu.tsx";
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
const CHIP_GAP = 4;
const CHIP_PADDING = 38;
const LONGEST_NAME = 112;
/** "+12 broken". */
const MORE_WIDTH = 92;
const ADD_WIDTH = 32;
/** "10 rules", where no name has a place. */
const ALL_WIDTH = 76;
/** The gap before a name. */
const BRIEF_LESS = 6;

/** If fewer names fit, the bar shows only counts. */
const FEWEST_NAMES = 2;

export function RuleBar({ hidden, past, onToggle, onPoint, onFilter, onOpenPage }: RuleBarProps) {
  const { value: list, problem } = useRules();
  const rules = list?.rules ?? NO_RULES;
  const changes = useRuleChanges(rules);
  const [edited, setEdited] = useState<EditedRule>(null);
  const [place, width] = useRoom();
  const mayChange = useMay("operator");
  const pointer = useSensor(PointerSensor, { activationConstraint: { distance: 6 } });
  const sensors = useSensors(mayChange ? pointer : null);
  const colors = useMemo(() => colorRules(rules), [rules]);
  const enabled = useMemo(() => rules.filter((rule) => rule.is_enabled), [rules]);
  const countsOf = (rule: RuleAnswer) => (past ? (past.get(rule.key) ?? null) : rule.counts);
  const newKeys = useNewKeys(list?.rules);
  const { shown, folded, isBrief } = useMemo(() => {
    const ordered = orderBar(
      enabled.map((rule) => ({
        rule,
        counts: past ? (past.get(rule.key) ?? null) : rule.counts,
        isNew: newKeys.has(rule.key),
      })),
    );
    return layOut(ordered, width, enabled.length < rules.length);
  }, [enabled, rules, past, width, newKeys]);
  const actions: RuleMenuActions = { changes, edit: setEdited, filter: onFilter, openPage: onOpenPage };
  const chipProps = (rule: RuleAnswer) => ({
    rule,
    color: toCssColor(colors, rule.key),
    counts: countsOf(rule),
    isShown: !hidden.includes(rule.key),
    isBrief,
    actions,
    onToggle: () => onToggle(rule.key),
    onPoint: (isPointed: boolean) => onPoint(isPointed ? rule.key : null),
  });
  const onDragEnd = ({ active, over }: DragEndEvent) => {
    if (over !== null && over.id !== active.id) changes.moveTo(String(active.id), String(over.id));
  };
  return (
    <section ref={place} className={styles.bar} aria-label="Rules">
      <DndContext sensors={sensors} collisionDetection={closestCenter} onDragEnd={onDragEnd}>
        <SortableContext items={shown.map(({ rule }) => rule.key)} strategy={rectSortingStrategy}>
          <ul className={styles.chips}>
            {shown.map(({ rule }) => (
              <RuleChip key={rule.key} {...chipProps(rule)} />
            ))}
          </ul>
        </SortableContext>
      </DndContext>
      <MoreRules
        folded={folded.map(({ rule }) => rule)}
        broken={folded.filter(isBroken).length}
        off={rules.filter((rule) => !rule.is_enabled)}
        isAll={isBrief || shown.length === 0}
        chipProps={(rule) => ({ ...chipProps(rule), isBrief: false })}
      />
      {mayChange && (
        <button
          type="button"
          className={styles.plus}
          aria-label="+ rule"
          data-tip={problem ? problem.message : "Define a rule"}
          onClick={() => setEdited("new")}
        >
          <Icon name="plus" size={13} />
        </button>
      )}
      <Toast notice={changes.notice} onDismiss={changes.dismiss} />
      <EditedRuleEditor edited={edited} rules={rules} onRemove={changes.remove} onClose={() => setEdited(null)} />
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

/** Rules that were created or enabled since the page was opened. */
function useNewKeys(rules: readonly RuleAnswer[] | undefined): ReadonlySet<string> {
  const first = useRef<ReadonlySet<string> | null>(null);
  return useMemo(() => {
    if (rules === undefined) return NO_KEYS;
    const keys = rules.filter((rule) => rule.is_enabled).map(({ key }) => key);
    first.current ??= new Set(keys);
    const initialKeys = first.current;
    return new Set(keys.filter((key) => !initialKeys.has(key)));
  }, [rules]);
}

const NO_KEYS: ReadonlySet<string> = new Set();

/** What is shown, what is not, and whether without names: those are then in the list behind the button. */
function layOut(
  rules: readonly BarRule[],
  width: number,
  isMore: boolean,
): { readonly shown: readonly BarRule[]; readonly folded: readonly BarRule[]; readonly isBrief: boolean } {
  const choose = (widths: readonly number[], less: number, more: number) =>
    fitBar(rules, widths, { width: width - ADD_WIDTH - less, gap: CHIP_GAP, more });
  const sizes = rules.map(({ counts }) => widthOf(formatCount(counts?.workloads ?? null)));
  const widths = rules.map(
    ({ rule }, at) => Math.min(LONGEST_NAME, widthOf(rule.name)) + (sizes[at] ?? 0) + CHIP_PADDING,
  );
  const named = choose(widths, isMore ? MORE_WIDTH : 0, isMore ? 0 : MORE_WIDTH);
  if (named.length >= Math.min(rules.length, FEWEST_NAMES)) {
    return { shown: named, folded: rules.filter((rule) => !named.includes(rule)), isBrief: false };
  }
  const brief = sizes.map((size) => size + CHIP_PADDING - BRIEF_LESS);
  return { shown: choose(brief, ALL_WIDTH, 0), folded: rules, isBrief: true };
}

let ruler: CanvasRenderingContext2D | null = null;

/** Measured as text, not on the page: what does not fit is never there. */
function widthOf(text: string): number {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (ruler === null) return LONGEST_NAME;
  ruler.font = '560 12px "Inter Variable", system-ui, sans-serif';
  return Math.ceil(ruler.measureText(text).width);
}
