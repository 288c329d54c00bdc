// Every key the page knows, in one list: opened by ?, or from the search.

import * as Dialog from "@radix-ui/react-dialog";
import { useEffect } from "react";
import { IconButton } from "../../widgets/button.tsx";
import { DialogContent } from "../../widgets/dialog.tsx";
import { Kbd } from "../../widgets/kbd.tsx";
import styles from "./keys-help.module.css";

export const IS_APPLE = /Mac|iPhone|iPad/.test(navigator.userAgent);

interface Key {
  /** Any of them, or together where joined by a plus. */
  readonly keys: readonly string[];
  readonly does: string;
}

const GROUPS: readonly { readonly title: string; readonly keys: readonly Key[] }[] = [
  {
    title: "Everywhere",
    keys: [
      { keys: ["Ctrl+K"], does: "find a workload, user, project or node" },
      { keys: ["P"], does: "hold the page as it is, and follow the cluster again" },
      { keys: ["Tab"], does: "go on to the next control" },
      { keys: ["Esc"], does: "close what is open: a menu, the details, the tour" },
      { keys: ["?"], does: "this list" },
    ],
  },
  {
    title: "Picture of all units",
    keys: [
      { keys: ["←", "→", "↑", "↓"], does: "from unit to unit" },
      { keys: ["[", "]"], does: "from group to group" },
      { keys: ["Enter"], does: "select the unit’s workload" },
      { keys: ["G"], does: "select its group; again, the group around it" },
      { keys: ["Z"], does: "zoom to its group" },
      { keys: ["+", "−"], does: "zoom" },
      { keys: ["0"], does: "show everything" },
      { keys: ["Backspace"], does: "back to where you were" },
      { keys: ["B", "L"], does: "select by a box or a loop" },
    ],
  },
  {
    title: "Tables",
    keys: [
      { keys: ["↑", "↓"], does: "from row to row" },
      { keys: ["Page Up", "Page Down", "Home", "End"], does: "further" },
      { keys: ["Enter"], does: "open the row" },
    ],
  },
  {
    title: "Time, while nothing is focused",
    keys: [
      { keys: ["←", "→"], does: "a minute back or forth" },
      { keys: ["Shift+←", "Shift+→"], does: "an hour" },
    ],
  },
  {
    title: "Layers and rules",
    keys: [
      { keys: ["Alt+↑", "Alt+↓"], does: "move a layer" },
      { keys: ["Delete"], does: "remove it" },
      { keys: ["Ctrl+Z", "Ctrl+Shift+Z"], does: "undo and redo a layout" },
      { keys: ["Alt+←", "Alt+→"], does: "move a rule" },
    ],
  },
];

interface KeysHelpProps {
  readonly isOpen: boolean;
  onOpenChange(isOpen: boolean): void;
}

export function KeysHelp({ isOpen, onOpenChange }: KeysHelpProps) {
  useHelpKey(onOpenChange);
  return (
    <Dialog.Root open={isOpen} onOpenChange={onOpenChange}>
      <DialogContent className={styles.dialog} aria-describedby={undefined}>
        <header>
          <Dialog.Title>Keys</Dialog.Title>
          <Dialog.Close asChild>
            <IconButton icon="close" label="Close" />
          </Dialog.Close>
        </header>
        <div className={styles.groups}>
          {GROUPS.map(({ title, keys }) => (
            <section key={title}>
              <h2>{title}</h2>
              <dl>
                {keys.map((key) => (
                  <div key={key.does}>
                    <dt>
                      {key.keys.map((name) => (
                        <Kbd key={name}>{IS_APPLE ? name.replace("Ctrl+", "⌘") : name}</Kbd>
                      ))}
                    </dt>
                    <dd>{key.does}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
      </DialogContent>
    </Dialog.Root>
  );
}

function useHelpKey(onOpenChange: (isOpen: boolean) => void): void {
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest("input, textarea, select, [role=dialog]");
      if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      event.preventDefault();
      onOpenChange(true);
    };
    document.addEventListener("keydown", open);
    return () => document.removeEventListener("keydown", open);
  }, [onOpenChange]);
}
