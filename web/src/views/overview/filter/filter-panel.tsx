// All conditions that facets do not show, as cards, and a button to add one.

import * as Popover from "@radix-ui/react-popover";
import { useState } from "react";
import type { RuleAnswer } from "../../../api/generated.ts";
import { useRules } from "../../../data/rules.ts";
import { FILTERED_MODES, type FilteredMode } from "../../../layout/grammar.ts";
import { ATTRIBUTES, type AttributeName } from "../../../state/attributes.ts";
import { setClause } from "../../../state/changes.ts";
import { attributeOfRule } from "../../../state/rules.ts";
import type { TableName } from "../../../state/screen.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { MOST_CLAUSES, type Where } from "../../../state/where.ts";
import { OptionList } from "../../../widgets/option-list.tsx";
import { PopupContent } from "../../../widgets/popup.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import type { Narrowed } from "./apply-where.ts";
import { ClauseCard, DraftCard } from "./clause-card.tsx";
import { listFacetClauses } from "./condition-words.ts";
import type { FilterColumns } from "./filter-columns.ts";
import styles from "./filter-panel.module.css";

/** What cards count and draw from. */
export interface FilterData {
  readonly table: TableName;
  readonly columns: FilterColumns;
  readonly narrowed: Narrowed;
  /** 1 for each row that counts; null: all do. */
  readonly drawn: Uint8Array | null;
}

interface FilterPanelProps extends FilterData {
  readonly where: Where;
  /** What becomes of units that are left out, and how to change it; null where there is no picture. */
  readonly filtered: { readonly mode: FilteredMode; onChange(mode: FilteredMode): void } | null;
}

export function FilterPanel({ where, filtered, ...data }: FilterPanelProps) {
  const change = useChangeScreen();
  const [draft, setDraft] = useState<AttributeName | null>(null);
  const [opened, setOpened] = useState<number | null>(null);
  const shownElsewhere = listFacetClauses(where, data.table);
  return (
    <section className={styles.panel} aria-label="Filter">
      <div className={styles.head}>
        <h2>Filter</h2>
        {filtered && where.length > 0 && (
          <Segmented
            label="Filtered units"
            name="filtered"
            value={filtered.mode}
            options={FILTERED_MODES.map((mode) => ({ value: mode, title: mode }))}
            onChange={(mode) => filtered.onChange(mode)}
          />
        )}
      </div>
      {where.map((clause, at) =>
        shownElsewhere.includes(at) ? null : (
          <ClauseCard
            // biome-ignore lint/suspicious/noArrayIndexKey: a clause is its place; its content changes as it is edited
            key={at}
            clause={clause}
            at={at}
            isOpen={opened === at}
            data={data}
            onOpen={(isOpen) => setOpened(isOpen ? at : null)}
          />
        ),
      )}
      {draft && (
        <DraftCard
          attribute={draft}
          data={data}
          onDone={(condition) => {
            setDraft(null);
            if (condition === null) return;
            change(setClause(where.length, [condition]));
            setOpened(where.length);
          }}
        />
      )}
      {where.length < MOST_CLAUSES && draft === null && (
        <AddCondition title="+ add a condition" columns={data.columns} onChoose={setDraft} />
      )}
    </section>
  );
}

interface AddConditionProps {
  readonly title: string;
  readonly columns: FilterColumns;
  onChoose(attribute: AttributeName): void;
}

export function AddCondition({ title, columns, onChoose }: AddConditionProps) {
  const [isOpen, setOpen] = useState(false);
  const rules = useRules().value?.rules;
  return (
    <Popover.Root open={isOpen} onOpenChange={setOpen}>
      <Popover.Trigger className={styles.add}>{title}</Popover.Trigger>
      <PopupContent className={styles.popup} align="start">
        {isOpen && (
          <OptionList
            label="Search attributes"
            options={[...listOptions(columns), ...listRules(columns, rules ?? [])]}
            onChoose={(attribute) => {
              setOpen(false);
              onChoose(attribute);
            }}
          />
        )}
      </PopupContent>
    </Popover.Root>
  );
}

const GROUPS = { name: "Names", now: "Metrics now", life: "Metrics over the workload's life", other: "Other numbers" };
const ORDER = [GROUPS.name, GROUPS.other, GROUPS.now, GROUPS.life];

function listRules(columns: FilterColumns, rules: readonly RuleAnswer[]) {
  return rules
    .filter((rule) => rule.is_enabled && columns.has(attributeOfRule(rule.key)))
    .map(({ key, name }) => ({ value: attributeOfRule(key), title: name, group: "Rules" }));
}

function listOptions(columns: FilterColumns) {
  return ATTRIBUTES.filter(({ name }) => columns.has(name))
    .map((attribute) => {
      const { name, title, kind } = attribute;
      if (kind === "name") return { value: name, title, group: GROUPS.name };
      if (attribute.metric === null) return { value: name, title, group: GROUPS.other };
      return { value: name, title, group: attribute.statistic === null ? GROUPS.now : GROUPS.life };
    })
    .sort((a, b) => ORDER.indexOf(a.group) - ORDER.indexOf(b.group));
}
