// A word on a tinted background: a state, a kind, "demo".

import type { ReactNode } from "react";
import { classNames } from "../base/class-names.ts";
import styles from "./tag.module.css";

export type Tone = "neutral" | "accent" | "ok" | "warn" | "bad";

export function Tag({ tone = "neutral", children, tip }: { tone?: Tone; children: ReactNode; tip?: string }) {
  return (
    <span className={classNames(styles.tag, styles[tone])} data-tip={tip}>
      {children}
    </span>
  );
}
