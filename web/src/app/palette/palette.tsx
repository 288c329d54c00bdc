// The command palette: search and actions by keyboard.

import * as Dialog from "@radix-ui/react-dialog";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { copyText } from "../../base/clipboard.ts";
import { useSearch } from "../../data/queries.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { DialogContent } from "../../widgets/dialog.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { Kbd } from "../../widgets/kbd.tsx";
import { setTheme } from "../theme.ts";
import { hitsFor, listItems, openHit, type PaletteAction, type PaletteItem } from "./items.ts";
import styles from "./palette.module.css";
import { readRecent, rememberHit } from "./recent.ts";

interface PaletteProps {
  readonly isOpen: boolean;
  onOpenChange(isOpen: boolean): void;
  /** Opens the list of keyboard shortcuts. */
  onKeys(): void;
}

export function Palette({ isOpen, onOpenChange, onKeys }: PaletteProps) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={onOpenChange}>
      <DialogContent className={styles.dialog} aria-describedby={undefined}>
        <Dialog.Title data-visually-hidden={true}>Find workload, user, project or node</Dialog.Title>
        <Content onDone={() => onOpenChange(false)} onKeys={onKeys} />
      </DialogContent>
    </Dialog.Root>
  );
}

function Content({ onDone, onKeys }: { onDone: () => void; onKeys: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const [recent] = useState(readRecent);
  const query = useDelayed(text.trim());
  const search = useSearch(query);
  const answered = search.value?.query ?? "";
  const isAnswered = text.trim() === "" || text.trim() === answered || search.problem !== null;
  const items = listItems(text, hitsFor(text, answered, search.value?.hits ?? []), recent);
  const index = Math.min(chosen, items.length - 1);
  const [isCopied, setCopied] = useState(false);
  const perform = usePerform(onDone, onKeys, setCopied);
  const id = useId();

  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && items.length > 0) {
      event.preventDefault();
      setChosen((index + step + items.length) % items.length);
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    setEntered(true);
  };

  // Enter waits for the results of the typed text and does not choose an older one.
  const [isEntered, setEntered] = useState(false);
  const item = items[index];
  useEffect(() => {
    if (!isEntered || !isAnswered) return;
    setEntered(false);
    if (item) perform(item.action);
  });

  return (
    <>
      <div className={styles.input}>
        <Icon name="search" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={items.length > 0 ? `${id}-${index}` : undefined}
          aria-label="Find workload, user, project or node"
          placeholder="Find workload, user, project, node, or an action"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setChosen(0);
            setEntered(false);
          }}
          onKeyDown={onKeyDown}
        />
        <Kbd>Esc</Kbd>
      </div>
      <Items id={id} items={items} index={index} isCopied={isCopied} onPoint={setChosen} onPerform={perform} />
      {items.length === 0 && (
        <p className={styles.none} role="status">
          {search.problem?.message ??
            (text.trim() === query && search.value ? `No results for “${query}”` : "Searching…")}
        </p>
      )}
    </>
  );
}

interface ItemsProps {
  readonly id: string;
  readonly items: readonly PaletteItem[];
  readonly index: number;
  readonly isCopied: boolean;
  onPoint(index: number): void;
  onPerform(action: PaletteAction): void;
}

function Items({ id, items, index, isCopied, onPoint, onPerform }: ItemsProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector(`[id="${id}-${index}"]`)?.scrollIntoView({ block: "nearest" });
  }, [id, index]);
  return (
    <div ref={list} id={`${id}-list`} role="listbox" aria-label="Results" className={styles.list}>
      {items.map((item, position) => (
        <div key={`${item.group}:${item.id}`} role="presentation">
          {items[position - 1]?.group !== item.group && <h2>{item.group}</h2>}
          {/* biome-ignore lint/a11y/useKeyWithClickEvents: the combobox above has the focus and the keys */}
          <div
            id={`${id}-${position}`}
            role="option"
            tabIndex={-1}
            aria-selected={position === index}
            className={styles.item}
            onPointerMove={() => onPoint(position)}
            onClick={() => onPerform(item.action)}
          >
            <Icon name={item.icon} size={14} />
            <span>{isCopied && item.action.kind === "copy-link" ? "Link copied" : item.label}</span>
            <small>{item.detail}</small>
          </div>
        </div>
      ))}
    </div>
  );
}

const COPIED_MS = 700;

function usePerform(onDone: () => void, onKeys: () => void, setCopied: (isCopied: boolean) => void) {
  const change = useChangeScreen();
  return (action: PaletteAction) => {
    switch (action.kind) {
      case "open":
        rememberHit(action.hit);
        change(openHit(action.hit));
        break;
      case "change":
        change(action.change);
        break;
      case "theme":
        setTheme(action.theme);
        break;
      case "keys":
        onKeys();
        break;
      case "copy-link":
        void copyText(location.href).then(() => setCopied(true));
        setTimeout(onDone, COPIED_MS);
        return;
    }
    onDone();
  };
}

const TYPING_PAUSE_MS = 120;

/** Debounces the text, so that not every letter sends a request. */
function useDelayed(text: string): string {
  const [delayed, setDelayed] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(text), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return delayed;
}
