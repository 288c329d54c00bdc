// A condition in force, in a few words; pressing it lifts the condition.

import type { ComponentProps } from "react";
import styles from "./chip.module.css";
import { Icon } from "./icon.tsx";

export function Chip({ children, ...props }: ComponentProps<"button">) {
  return (
    <button type="button" className={styles.chip} {...props}>
      {children}
      <Icon name="close" size={10} />
    </button>
  );
}

export function Chips(props: ComponentProps<"span">) {
  return <span className={styles.chips} {...props} />;
}
