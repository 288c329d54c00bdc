// The parts of details panels: a head with title, actions and close button, which stays in view, and cards.

import type { ReactNode } from "react";
import { select } from "../../state/changes.ts";
import type { SelectionKind } from "../../state/screen.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { IconButton } from "../../widgets/button.tsx";
import styles from "./panel.module.css";

export function Panel({ children }: { children: ReactNode }) {
  return <div className={styles.panel}>{children}</div>;
}

interface PanelHeadProps {
  readonly kind: string;
  readonly title: string;
  readonly tag?: ReactNode;
  readonly detail?: ReactNode;
  /** Buttons that stay in view while the panel scrolls. */
  readonly actions?: ReactNode;
}

export function PanelHead({ kind, title, tag, detail, actions }: PanelHeadProps) {
  const change = useChangeScreen();
  return (
    <header className={styles.head}>
      <div className={styles.top}>
        <span className={styles.kind}>{kind}</span>
        <IconButton icon="close" label="Close details" onClick={() => change(select(null))} />
      </div>
      <div className={styles.title}>
        <h1>{title}</h1>
        {tag}
      </div>
      {detail && <div className={styles.detail}>{detail}</div>}
      {actions && <div className={styles.actions}>{actions}</div>}
    </header>
  );
}

/** A card has a title, or a label for those who cannot see what it obviously is. */
export function Card({ title, label, children }: { title?: string; label?: string; children: ReactNode }) {
  return (
    <section className={styles.card} aria-label={label ?? title}>
      {title && <h2>{title}</h2>}
      {children}
    </section>
  );
}

/** Text that opens the details of something else. */
export function OpenLink({ kind, name, children }: { kind: SelectionKind; name: string; children?: ReactNode }) {
  const change = useChangeScreen();
  return (
    <button type="button" className={styles.link} onClick={() => change(select({ kind, key: name }))}>
      {children ?? name}
    </button>
  );
}
