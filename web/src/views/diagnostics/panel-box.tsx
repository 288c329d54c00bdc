// A panel of the page: a heading, its choices, its drawing, and the drawing as a picture to keep.

import { type ReactNode, useRef } from "react";
import { PictureMenu } from "../../parts/charts/picture-menu.tsx";
import styles from "./panel-box.module.css";

interface PanelBoxProps {
  readonly title: string;
  readonly tools?: ReactNode;
  /** The file's name without its ending; none: there is nothing to keep. */
  readonly file?: string | undefined;
  /** The same as a table, to take along; none: there is no table. */
  onCsv?: (() => void) | undefined;
  /** Whether it is words only now, so that there is no picture of it. */
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
