// The layout of every view: summary strip at the top, controls left, content in the middle, details right, time at the
// bottom. On narrow screens the controls are above and the details overlay the content.

import type { ReactNode } from "react";
import styles from "./view-layout.module.css";

interface ViewLayoutProps {
  readonly strip: ReactNode;
  readonly controls: ReactNode;
  /** The controls are only to be read: the keyboard scrolls them as a whole. */
  readonly hasNoControls?: boolean;
  readonly details: ReactNode | null;
  readonly time?: ReactNode;
  readonly children: ReactNode;
}

export function ViewLayout({ strip, controls, hasNoControls, details, time, children }: ViewLayoutProps) {
  return (
    <div className={styles.layout} data-details={details !== null || undefined}>
      <section className={styles.strip} aria-label="Summary">
        {strip}
      </section>
      <aside className={styles.controls} aria-label="Controls" tabIndex={hasNoControls ? 0 : undefined}>
        {controls}
      </aside>
      <main className={styles.main}>{children}</main>
      {details !== null && (
        <aside className={styles.details} aria-label="Details">
          {details}
        </aside>
      )}
      {time && <footer className={styles.time}>{time}</footer>}
    </div>
  );
}
