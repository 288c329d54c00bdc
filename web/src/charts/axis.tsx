// Axis labels below a chart or at its left, as text of the page.

import styles from "./chart.module.css";
import type { Scale } from "./scales.ts";

interface AxisProps {
  readonly scale: Scale;
  readonly side: "below" | "left";
  /** Pixels along the axis. */
  readonly length: number;
}

const EDGE_PX = 16;

export function Axis({ scale, side, length }: AxisProps) {
  return (
    <div className={side === "below" ? styles.below : styles.left} aria-hidden="true">
      {scale.ticks.map(({ at, text }) => {
        const ratio = scale.place(at);
        // A label stands around its place: at the very ends it would be cut.
        if (side === "below" && (ratio * length < EDGE_PX || (1 - ratio) * length < EDGE_PX)) return null;
        const place = `${ratio * 100}%`;
        return (
          <span key={at} data-drawn-label={true} style={side === "below" ? { left: place } : { bottom: place }}>
            {text}
          </span>
        );
      })}
    </div>
  );
}
