// A panel of the page: a heading, its choices, its drawing, and the drawing as a picture to keep.

import { type ReactNode, useRef } from "react";
import { downloadBlob } from "../../base/download.ts";
import { IconButton } from "../../widgets/button.tsx";
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
            <IconButton
              icon="download"
              label={`${title} as PNG`}
              onClick={() => place.current && savePicture(place.current, `${file}.png`)}
            />
          )}
        </div>
      </header>
      {children}
    </section>
  );
}

/** All canvases of a panel as they stand on the page, upon its color. */
function savePicture(panel: HTMLElement, name: string): void {
  const frame = panel.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const sheet = document.createElement("canvas");
  sheet.width = Math.round(frame.width * ratio);
  sheet.height = Math.round(frame.height * ratio);
  const pen = sheet.getContext("2d");
  if (!pen) return;
  const style = getComputedStyle(panel);
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.scale(ratio, ratio);
  pen.fillStyle = style.color;
  pen.font = `600 13px ${style.fontFamily}`;
  pen.fillText(panel.getAttribute("aria-label") ?? "", 14, 22);
  for (const canvas of panel.querySelectorAll("canvas")) {
    const box = canvas.getBoundingClientRect();
    pen.drawImage(canvas, box.left - frame.left, box.top - frame.top, box.width, box.height);
  }
  for (const label of panel.querySelectorAll<HTMLElement>("[data-drawn-label]")) {
    const box = label.getBoundingClientRect();
    pen.font = `11px ${style.fontFamily}`;
    pen.fillText(label.textContent ?? "", box.left - frame.left, box.bottom - frame.top - 3);
  }
  sheet.toBlob((blob) => blob && downloadBlob(name, blob));
}
