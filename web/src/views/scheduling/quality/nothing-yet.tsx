// A calm word in the place of a chart that cannot be drawn yet, and what it waits for.

import type { ReactNode } from "react";
import { Icon } from "../../../widgets/icon.tsx";
import styles from "./quality.module.css";

export function Waits({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={styles.waits} role="status">
      <Icon name="recent" size={20} />
      <strong>{title}</strong>
      <span>{children}</span>
    </div>
  );
}
