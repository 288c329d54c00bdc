// The number of rows of a table, at the end of its toolbar, with the export menu.

import type { ReactNode } from "react";
import styles from "./row-count.module.css";

export function RowCount({ words, children }: { words: string; children?: ReactNode }) {
  return (
    <div className={styles.count}>
      <span role="status">{words}</span>
      {children}
    </div>
  );
}
