// The palette of attributes: each can be dragged to any place among the layers; a layer that is dropped here is removed.

import { useDraggable, useDroppable } from "@dnd-kit/core";
import { useMemo } from "react";
import type { Units } from "../../../data/units.ts";
import { listChoices } from "./attribute-choices.ts";
import styles from "./layout-editor.module.css";
import { PALETTE, paletteId } from "./places.ts";

interface PaletteProps {
  readonly units: Units;
  /** Attributes of the layers there are. */
  readonly used: readonly string[];
  /** Whether a layer is being dragged, which can be dropped here. */
  readonly isTarget: boolean;
  readonly isFull: boolean;
}

/** Names that units have several values of; numbers and the rest are in the list behind "add a layer". */
export function Palette({ units, used, isTarget, isFull }: PaletteProps) {
  const { setNodeRef, isOver } = useDroppable({ id: PALETTE });
  const choices = useMemo(
    () =>
      listChoices(units, used).filter(
        ({ attribute, hint }) => attribute.kind === "name" && hint !== "1 value" && !used.includes(attribute.name),
      ),
    [units, used],
  );
  return (
    <section
      ref={setNodeRef}
      className={styles.palette}
      aria-label="Attributes to add"
      data-target={isTarget || undefined}
      data-over={(isTarget && isOver) || undefined}
    >
      {isTarget && <p>Drop here to remove the layer</p>}
      <ul>
        {choices.map(({ attribute, hint }) => (
          <Attribute key={attribute.name} name={attribute.name} title={attribute.title} hint={hint} isOff={isFull} />
        ))}
      </ul>
    </section>
  );
}

interface AttributeProps {
  readonly name: string;
  readonly title: string;
  readonly hint: string;
  readonly isOff: boolean;
}

function Attribute({ name, title, hint, isOff }: AttributeProps) {
  const draggable = useDraggable({ id: paletteId(name), disabled: isOff });
  return (
    <li>
      <button
        {...draggable.attributes}
        {...draggable.listeners}
        ref={draggable.setNodeRef}
        type="button"
        className={styles.attribute}
        aria-label={`Add ${title}`}
        data-tip={`${hint}. Drag it among the layers`}
        data-dragging={draggable.isDragging || undefined}
        disabled={isOff}
      >
        {title}
      </button>
    </li>
  );
}
