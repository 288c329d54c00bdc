// Shown in place of a chart without data: what is missing, and when it will be there.

import type { ReactNode } from "react";
import { Icon } from "../../../widgets/icon.tsx";
import styles from "./quality.module.css";

/** Shares of fewer cases mean nothing: 1 of 2 is not 50 %. */
export const MIN_FOR_SHARES = 20;

export function EmptyChart({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={styles.empty} role="status">
      <Icon name="recent" size={20} />
      <strong>{title}</strong>
      <span>{children}</span>
    </div>
  );
}
