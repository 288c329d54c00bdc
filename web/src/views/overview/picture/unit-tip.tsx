// The tooltip of a unit.

import type { ReactNode } from "react";
import { formatPlural } from "../../../base/format.ts";
import type { Size } from "./camera.ts";
import styles from "./picture.module.css";
import type { UnitWords } from "./unit-words.ts";

interface UnitTipProps {
  readonly words: UnitWords;
  /** GPUs of the same workload. */
  readonly held: number;
  /** The middle of the square, in pixels of the picture. */
  readonly x: number;
  readonly y: number;
  readonly picture: Size;
  /** What the rules say of it. */
  readonly children?: ReactNode;
}

const TIP_WIDTH = 248;
/** Of the tallest one, with all its lines. */
const TIP_HEIGHT = 196;
const GAP = 14;

export function UnitTip({ words, held, x, y, picture, children }: UnitTipProps) {
  const isLeft = x + GAP + TIP_WIDTH > picture.width;
  const left = Math.max(4, isLeft ? x - GAP - TIP_WIDTH : x + GAP);
  const top = Math.max(4, Math.min(y - 20, picture.height - TIP_HEIGHT));
  return (
    <div role="tooltip" className={styles.tip} style={{ left, top, width: TIP_WIDTH }}>
      <header>
        <b>{words.title}</b>
        <small>{words.state}</small>
      </header>
      {words.holder && (
        <p>
          <span>{words.holder}</span>
          {held > 1 && <small>{formatPlural(held, "GPU")}</small>}
        </p>
      )}
      {words.owner && <p className={styles.quiet}>{words.owner}</p>}
      <p className={styles.value}>
        <small>{words.valueTitle}</small>
        <b>{words.value}</b>
      </p>
      {children}
    </div>
  );
}
