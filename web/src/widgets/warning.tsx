// A warning about the numbers next to it.

import type { ReactNode } from "react";
import { Icon } from "./icon.tsx";
import styles from "./warning.module.css";

export function Warning({ children }: { children: ReactNode }) {
  return (
    <div className={styles.warning} role="alert">
      <Icon name="alert" size={14} />
      <div>{children}</div>
    </div>
  );
}
