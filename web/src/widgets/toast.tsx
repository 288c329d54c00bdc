// A toast: a message at the bottom of the page that disappears by itself, with an undo button if there is one.

import { useEffect } from "react";
import { createPortal } from "react-dom";
import { IconButton } from "./button.tsx";
import styles from "./toast.module.css";

export interface Notice {
  readonly text: string;
  /** Takes it back; null where it cannot be. */
  readonly undo: (() => void) | null;
}

const SHOWN_MS = 4000;
/** Who regrets needs longer than who reads. */
const UNDO_MS = 10_000;

export function Toast({ notice, onDismiss }: { notice: Notice | null; onDismiss: () => void }) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timer restarts with each notice, not with each rendering
  useEffect(() => {
    if (notice === null) return;
    const timer = setTimeout(onDismiss, notice.undo ? UNDO_MS : SHOWN_MS);
    return () => clearTimeout(timer);
  }, [notice]);
  return createPortal(
    <div role="status" className={styles.place}>
      {notice && (
        <p className={styles.toast}>
          <span>{notice.text}</span>
          {notice.undo && (
            <button type="button" onClick={notice.undo}>
              Undo
            </button>
          )}
          <IconButton icon="close" label="Dismiss" onClick={onDismiss} />
        </p>
      )}
    </div>,
    document.body,
  );
}
