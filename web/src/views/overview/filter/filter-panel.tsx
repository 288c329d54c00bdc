// All conditions that facets do not show, as cards, and a button to add one.

import * as Popover from "@radix-ui/react-popover";
import { useRef, useState } from "react";
import type { RuleAnswer } from "../../../api/generated.ts";
import { useRules } from "../../../data/rules.ts";
import { FILTERED_MODES, type FilteredMode } from "../../../layout/grammar.ts";
import { ATTRIBUTES, type AttributeName } from "../../../state/attributes.ts";
import { attributeOfRule } from "../../../state/rules.ts";
import type { TableName } from "../../../state/screen.ts";
import { MOST_CLAUSES, type Where } from "../../../state/where.ts";
import { OptionList } from "../../../widgets/option-list.tsx";
import { PopupContent } from "../../../widgets/popup.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import type { Narrowed } from "./apply-where.ts";
import { ClauseCard } from "./clause-card.tsx";
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
      {[...where, ...(draft === null ? [] : [[]])].map((clause, at) =>
        at < where.length && shownElsewhere.includes(at) ? null : (
          <ClauseCard
            // biome-ignore lint/suspicious/noArrayIndexKey: a clause is its place; its content changes as it is edited
            key={at}
            clause={clause}
            at={at}
            draft={at < where.length ? null : draft}
            isOpen={at >= where.length || opened === at}
            data={data}
            onOpen={(isOpen) => setOpened(isOpen ? at : null)}
            onEmptied={setDraft}
            onDraftDone={(isInForce) => {
              setDraft(null);
              if (isInForce) setOpened(at);
            }}
          />
        ),
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
  const wasChosen = useRef(false);
  const rules = useRules().value?.rules;
  return (
    <Popover.Root
      open={isOpen}
      onOpenChange={(next) => {
        wasChosen.current = false;
        setOpen(next);
      }}
    >
      <Popover.Trigger className={styles.add}>{title}</Popover.Trigger>
      {/* The keys go to the new condition, not back to the button. */}
      <PopupContent
        className={styles.popup}
        align="start"
        onCloseAutoFocus={(event) => wasChosen.current && event.preventDefault()}
      >
        {isOpen && (
          <OptionList
            label="Search attributes"
            options={[...listOptions(columns), ...listRules(columns, rules ?? [])]}
            onChoose={(attribute) => {
              wasChosen.current = true;
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
