// An active condition in a few words; a click removes it.

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
