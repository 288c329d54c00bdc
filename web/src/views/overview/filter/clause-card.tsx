// A clause as a card: alternatives of conditions. Collapsed it describes them, expanded they can be edited.

import { type RefObject, useEffect, useRef, useState } from "react";
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
  /** The attribute of a new condition that demands nothing yet: it comes into force with the first choice. */
  readonly draft?: AttributeName | null;
  readonly isOpen: boolean;
  readonly data: FilterData;
  onOpen(isOpen: boolean): void;
  /** The draft came into force (true), or was given up. */
  onDraftDone?(isInForce: boolean): void;
  /** Its only condition demands nothing any more. */
  onEmptied?(attribute: AttributeName): void;
}

/** A draft and the clause that it becomes are one card at one place, so that the keys stay where they are. */
export function ClauseCard({
  clause,
  at,
  draft = null,
  isOpen,
  data,
  onOpen,
  onDraftDone,
  onEmptied,
}: ClauseCardProps) {
  const change = useChangeScreen();
  const [alternative, setAlternative] = useState<AttributeName | null>(null);
  const unapplied = draft === null ? explainUnapplied(clause, data.narrowed.isApplied[at], data.table) : null;
  const title = draft === null ? clause.map(titleOf).join(" or ") : attributeOf(draft).title;
  const pending = draft ?? alternative;
  const rows: readonly { attribute: AttributeName; condition: Condition | null }[] = [
    ...clause.map((condition) => ({ attribute: condition.attribute, condition })),
    ...(pending === null ? [] : [{ attribute: pending, condition: null }]),
  ];
  const put = (index: number, condition: Condition | null, isFirst = true) => {
    const next = [...clause.slice(0, index), ...(condition ? [condition] : []), ...clause.slice(index + 1)];
    change(setClause(at, next.length > 0 ? next : null), isFirst ? "push" : "replace");
    // An emptied text field stays where it is, to type on.
    const emptied = next.length === 0 ? clause[index] : undefined;
    if (emptied?.kind === "text") onEmptied?.(emptied.attribute);
    if (index < clause.length) return;
    setAlternative(null);
    if (draft !== null) onDraftDone?.(condition !== null);
  };
  const card = useFocusWhenNew(pending);
  return (
    <article
      ref={card}
      className={styles.card}
      aria-label={`Condition ${title}`}
      data-unapplied={unapplied !== null || undefined}
    >
      <header>
        <button type="button" aria-expanded={isOpen} disabled={draft !== null} onClick={() => onOpen(!isOpen)}>
          <b>{title}</b>
          {!isOpen && <small>{clause.map(describeCondition).join(" or ")}</small>}
        </button>
        <IconButton
          icon="close"
          label={`Remove condition ${title}`}
          onClick={() => (draft === null ? change(setClause(at, null)) : onDraftDone?.(false))}
        />
      </header>
      {unapplied && <p className={styles.note}>{unapplied}</p>}
      {isOpen &&
        rows.map(({ attribute, condition }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a condition is its place; its content changes as it is edited
          <div key={index} className={styles.alternative}>
            {rows.length > 1 && (
              <h3>
                {index > 0 && "or "}
                {attributeOf(attribute).title}
              </h3>
            )}
            <ConditionEditor
              attribute={attributeOf(attribute)}
              condition={condition}
              clauseAt={condition !== null && clause.length === 1 ? at : -1}
              data={data}
              onChange={(next, isFirst) => {
                if (condition !== null || next !== null) put(index, next, isFirst);
              }}
            />
          </div>
        ))}
      {isOpen && pending === null && <AddCondition title="+ or …" columns={data.columns} onChoose={setAlternative} />}
    </article>
  );
}

/** Scrolls a new condition into view and puts the keys into its first field. */
function useFocusWhenNew(pending: AttributeName | null): RefObject<HTMLElement | null> {
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (pending === null || card.current === null) return;
    const row = card.current.querySelector(`.${styles.alternative}:last-of-type`) ?? card.current;
    const field =
      row.querySelector<HTMLElement>("input:not([type=checkbox])") ?? row.querySelector<HTMLElement>("input");
    (field ?? row.querySelector<HTMLElement>("select"))?.focus({ preventScroll: true });
    card.current.scrollIntoView({ block: "nearest" });
  }, [pending]);
  return card;
}
