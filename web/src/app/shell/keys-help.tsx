// The dialog that lists all keyboard shortcuts: opened by ?, or from the palette.

import * as Dialog from "@radix-ui/react-dialog";
import { useEffect } from "react";
import { IconButton } from "../../widgets/button.tsx";
import { DialogContent } from "../../widgets/dialog.tsx";
import { Kbd } from "../../widgets/kbd.tsx";
import styles from "./keys-help.module.css";

export const IS_APPLE = /Mac|iPhone|iPad/.test(navigator.userAgent);

interface Key {
  /** Alternatives; a plus joins keys that are pressed together. */
  readonly keys: readonly string[];
  readonly does: string;
}

const GROUPS: readonly { readonly title: string; readonly keys: readonly Key[] }[] = [
  {
    title: "Everywhere",
    keys: [
      { keys: ["Ctrl+K"], does: "Find a workload, user, project or node" },
      { keys: ["P"], does: "Pause or resume live updates" },
      { keys: ["Tab"], does: "Move to the next control" },
      { keys: ["Esc"], does: "Close the open menu, details or tour" },
      { keys: ["?"], does: "Show this list" },
    ],
  },
  {
    title: "Picture of all units",
    keys: [
      { keys: ["←", "→", "↑", "↓"], does: "Move between units" },
      { keys: ["[", "]"], does: "Move between groups" },
      { keys: ["Enter"], does: "Select the unit’s workload" },
      { keys: ["G"], does: "Select its group; press again for the group around it" },
      { keys: ["Z"], does: "Zoom to its group" },
      { keys: ["+", "−"], does: "Zoom in or out" },
      { keys: ["0"], does: "Show everything" },
      { keys: ["Backspace"], does: "Go back to the previous position" },
      { keys: ["R"], does: "Repack the groups without gaps" },
      { keys: ["B", "L"], does: "Select with a box or a lasso" },
    ],
  },
  {
    title: "Tables",
    keys: [
      { keys: ["↑", "↓"], does: "Move between rows" },
      { keys: ["Page Up", "Page Down", "Home", "End"], does: "Move by a page, or to the start or end" },
      { keys: ["Enter"], does: "Open the row" },
    ],
  },
  {
    title: "Time, while nothing is focused",
    keys: [
      { keys: ["←", "→"], does: "Move a minute back or forward" },
      { keys: ["Shift+←", "Shift+→"], does: "Move an hour back or forward" },
    ],
  },
  {
    title: "Layers and rules",
    keys: [
      { keys: ["Alt+↑", "Alt+↓"], does: "Move a layer" },
      { keys: ["Delete"], does: "Remove a layer" },
      { keys: ["Ctrl+Z", "Ctrl+Shift+Z"], does: "Undo or redo a layout change" },
      { keys: ["Alt+←", "Alt+→"], does: "Move a rule" },
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
          <Dialog.Title>Keyboard shortcuts</Dialog.Title>
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
