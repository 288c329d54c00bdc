// A layer as a card: its attribute and layout, a drag handle, and a settings button.

import { useSortable } from "@dnd-kit/sortable";
import { CSS } from "@dnd-kit/utilities";
import * as Popover from "@radix-ui/react-popover";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { IconButton } from "../../../widgets/button.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import { PopupContent } from "../../../widgets/popup.tsx";
import styles from "./layout-editor.module.css";
import settings from "./settings.module.css";

interface LayerCardProps {
  readonly id: string;
  readonly depth: number;
  /** Whether a dragged attribute would land before it. */
  readonly isBefore: boolean;
  readonly title: string;
  readonly words: string;
  /** Whether the keys are to be on this card: it was just moved by them. */
  readonly hasKeys: boolean;
  /** What the gear opens. */
  readonly children: ReactNode;
  onMove(step: -1 | 1): void;
  onRemove(): void;
}

export function LayerCard({ id, depth, isBefore, title, words, hasKeys, children, onMove, onRemove }: LayerCardProps) {
  const sortable = useSortable({ id });
  const handle = useRef<HTMLButtonElement | null>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (hasKeys) handle.current?.focus();
  }, [hasKeys]);
  const onKeyDown = (event: KeyboardEvent) => {
    // What is typed into the settings comes by here, too, although they lie elsewhere on the page.
    if (!(event.target instanceof Node) || !event.currentTarget.contains(event.target) || sortable.isDragging) return;
    if (event.altKey && event.key === "ArrowUp") onMove(-1);
    else if (event.altKey && event.key === "ArrowDown") onMove(1);
    else if (event.key === "Delete" || event.key === "Backspace") onRemove();
    else return;
    event.preventDefault();
  };
  return (
    <li
      ref={sortable.setNodeRef}
      className={styles.card}
      data-dragging={sortable.isDragging || undefined}
      data-before={isBefore || undefined}
      style={{
        marginLeft: `${depth * INDENT_PX}px`,
        transform: CSS.Translate.toString(sortable.transform),
        transition: sortable.transition,
      }}
      onKeyDown={onKeyDown}
    >
      <Popover.Root open={isOpen} onOpenChange={setOpen}>
        <button
          {...sortable.attributes}
          {...sortable.listeners}
          ref={(element) => {
            handle.current = element;
            sortable.setActivatorNodeRef(element);
          }}
          type="button"
          className={styles.handle}
          aria-label={`Layer ${depth + 1}: ${title} ${words}`}
          onClick={() => setOpen(true)}
        >
          <Icon name="grip" size={14} />
          {/* The space is for those who hear both as one name. */}
          <span>{title}</span> <small>{words}</small>
        </button>
        <Popover.Trigger asChild>
          <IconButton icon="gear" label={`Settings of ${title}`} className={styles.gear} />
        </Popover.Trigger>
        <Settings title={title}>{children}</Settings>
      </Popover.Root>
    </li>
  );
}

export const INDENT_PX = 10;

export function Settings({ title, children }: { title: string; children: ReactNode }) {
  return (
    <PopupContent
      className={settings.popup}
      side="right"
      align="start"
      sideOffset={10}
      aria-label={`Settings of ${title}`}
      // The first control may be a list of attributes that takes the keys by itself.
      onOpenAutoFocus={(event) => {
        if (document.activeElement?.closest("[role=combobox]")) event.preventDefault();
      }}
    >
      <h3>{title}</h3>
      {children}
    </PopupContent>
  );
}
