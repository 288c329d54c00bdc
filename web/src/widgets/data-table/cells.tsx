// Cells that several tables share.

import type { ReactNode } from "react";
import { MISSING } from "../../base/format.ts";
import styles from "./cells.module.css";

/** Text that is cut where it does not fit, whole on hover. */
export function Text({ children, isMuted = false }: { children: string | null | undefined; isMuted?: boolean }) {
  if (!children) return <Missing />;
  return (
    <span className={isMuted ? styles.mutedText : styles.text} title={children}>
      {children}
    </span>
  );
}

export function Missing() {
  return <span className={styles.missing}>{MISSING}</span>;
}

/** What a row is called: its mark, its name, and a quieter second name. */
export function Name({ mark, name, detail }: { mark: ReactNode; name: string; detail?: string | null }) {
  return (
    <>
      {mark}
      <span className={styles.name} title={detail ? `${name} · ${detail}` : name}>
        {name}
        {detail && <small>{detail}</small>}
      </span>
    </>
  );
}
