// A clause as a card: alternatives of conditions. Collapsed it describes them, expanded they can be edited.

import { useState } from "react";
import { type AttributeName, attributeOf } from "../../../state/attributes.ts";
import { setClause } from "../../../state/changes.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import type { Clause, Condition } from "../../../state/where.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { ConditionEditor } from "./condition-editor.tsx";
import { describeCondition, explainUnapplied, titleOf } from "./condition-words.ts";
import styles from "./filter-panel.module.css";
import { AddCondition, type FilterData } from "./filter-panel.tsx";

interface ClauseCardProps {
  readonly clause: Clause;
  readonly at: number;
  readonly isOpen: boolean;
  readonly data: FilterData;
  onOpen(isOpen: boolean): void;
}

export function ClauseCard({ clause, at, isOpen, data, onOpen }: ClauseCardProps) {
  const change = useChangeScreen();
  const [alternative, setAlternative] = useState<AttributeName | null>(null);
  const unapplied = explainUnapplied(clause, data.narrowed.isApplied[at], data.table);
  const title = clause.map(titleOf).join(" or ");
  const put = (index: number, condition: Condition | null, isFirst = true) => {
    const next = [...clause.slice(0, index), ...(condition ? [condition] : []), ...clause.slice(index + 1)];
    change(setClause(at, next.length > 0 ? next : null), isFirst ? "push" : "replace");
  };
  return (
    <article className={styles.card} aria-label={`Condition ${title}`} data-unapplied={unapplied !== null || undefined}>
      <header>
        <button type="button" aria-expanded={isOpen} onClick={() => onOpen(!isOpen)}>
          <b>{title}</b>
          {!isOpen && <small>{clause.map(describeCondition).join(" or ")}</small>}
        </button>
        <IconButton icon="close" label={`Remove condition ${title}`} onClick={() => change(setClause(at, null))} />
      </header>
      {unapplied && <p className={styles.note}>{unapplied}</p>}
      {isOpen &&
        clause.map((condition, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a condition is its place; its content changes as it is edited
          <div key={index} className={styles.alternative}>
            {clause.length > 1 && (
              <h3>
                {index > 0 && "or "}
                {titleOf(condition)}
              </h3>
            )}
            <ConditionEditor
              attribute={attributeOf(condition.attribute)}
              condition={condition}
              clauseAt={clause.length === 1 ? at : -1}
              data={data}
              onChange={(next, isFirst) => put(index, next, isFirst)}
            />
          </div>
        ))}
      {isOpen && alternative && (
        <div className={styles.alternative}>
          <h3>or {attributeOf(alternative).title}</h3>
          <ConditionEditor
            attribute={attributeOf(alternative)}
            condition={null}
            clauseAt={-1}
            data={data}
            onChange={(condition) => {
              setAlternative(null);
              if (condition) put(clause.length, condition);
            }}
          />
        </div>
      )}
      {isOpen && alternative === null && (
        <AddCondition title="+ or …" columns={data.columns} onChoose={setAlternative} />
      )}
    </article>
  );
}

interface DraftCardProps {
  readonly attribute: AttributeName;
  readonly data: FilterData;
  /** Null: given up. */
  onDone(condition: Condition | null): void;
}

/** A condition that does not demand anything yet: it comes into force with the first choice. */
export function DraftCard({ attribute, data, onDone }: DraftCardProps) {
  const { title } = attributeOf(attribute);
  return (
    <article className={styles.card} aria-label={`Condition ${title}`}>
      <header>
        <button type="button" aria-expanded="true" disabled>
          <b>{title}</b>
        </button>
        <IconButton icon="close" label={`Remove condition ${title}`} onClick={() => onDone(null)} />
      </header>
      <ConditionEditor
        attribute={attributeOf(attribute)}
        condition={null}
        clauseAt={-1}
        data={data}
        onChange={(condition) => onDone(condition)}
      />
    </article>
  );
}
