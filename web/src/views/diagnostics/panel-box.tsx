// A panel of the page: a heading, its choices, its drawing, and the drawing as a picture to keep.

import { type ReactNode, useRef } from "react";
import { savePng, saveSvg } from "../../charts/save-picture.ts";
import { IconButton } from "../../widgets/button.tsx";
import { Menu, MenuItem } from "../../widgets/menu.tsx";
import styles from "./panel-box.module.css";

interface PanelBoxProps {
  readonly title: string;
  readonly tools?: ReactNode;
  /** The file's name without its ending; none: there is nothing to keep. */
  readonly file?: string | undefined;
  readonly className?: string | undefined;
  readonly children: ReactNode;
}

export function PanelBox({ title, tools, file, className, children }: PanelBoxProps) {
  const place = useRef<HTMLElement>(null);
  return (
    <section ref={place} className={`${styles.panel} ${className ?? ""}`} aria-label={title}>
      <header className={styles.head}>
        <h2>{title}</h2>
        <div className={styles.tools}>
          {tools}
          {file && (
            <Menu trigger={<IconButton icon="download" label={`${title} as a picture`} />}>
              <MenuItem hint="pixels" onSelect={() => place.current && savePng(place.current, `${file}.png`)}>
                PNG
              </MenuItem>
              <MenuItem hint="shapes" onSelect={() => place.current && saveSvg(place.current, `${file}.svg`)}>
                SVG
              </MenuItem>
            </Menu>
          )}
        </div>
      </header>
      {children}
    </section>
  );
}
