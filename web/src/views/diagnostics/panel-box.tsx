// A panel of the page: heading, tools, content and export.

import { type ReactNode, useRef } from "react";
import { PictureMenu } from "../../parts/charts/picture-menu.tsx";
import styles from "./panel-box.module.css";

interface PanelBoxProps {
  readonly title: string;
  readonly tools?: ReactNode;
  /** File name without extension; absent: no export. */
  readonly file?: string | undefined;
  /** Exports the table; absent: no table. */
  onCsv?: (() => void) | undefined;
  /** Whether the content can be exported as a picture. */
  readonly hasPicture?: boolean;
  readonly className?: string | undefined;
  readonly children: ReactNode;
}

export function PanelBox({ title, tools, file, onCsv, hasPicture = true, className, children }: PanelBoxProps) {
  const place = useRef<HTMLElement>(null);
  return (
    <section ref={place} className={`${styles.panel} ${className ?? ""}`} aria-label={title}>
      <header className={styles.head}>
        <h2>{title}</h2>
        <div className={styles.tools}>
          {tools}
          {file && <PictureMenu place={place} what={title} file={file} hasPicture={hasPicture} onCsv={onCsv} />}
        </div>
      </header>
      {children}
    </section>
  );
}
