// Labels of a stretch of numbers at round values, below a chart or beside it.

import styles from "./number-axis.module.css";

/** Round values within [low, high], at most about `most` of them. */
export function listNumbers(low: number, high: number, most: number): readonly number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return Number.isFinite(low) ? [low] : [];
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((each) => each * power >= raw) ?? 10) * power;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, at) => (first + at) * step);
}

interface NumberAxisProps {
  readonly low: number;
  readonly high: number;
  /** Pixels along the axis. */
  readonly length: number;
  readonly side: "below" | "left";
  /** Labels are round multiples of this: 60 for seconds that are told as minutes. */
  readonly scale?: number;
  say(value: number): string;
}

const LABEL_PX = { below: 70, left: 36 };
const EDGE_PX = 14;

export function NumberAxis({ low, high, length, side, scale = 1, say }: NumberAxisProps) {
  return (
    <div className={styles[side]} aria-hidden="true">
      {listNumbers(low / scale, high / scale, length / LABEL_PX[side]).map((round) => {
        const value = round * scale;
        const ratio = (value - low) / (high - low || 1);
        // A label stands around its place: at the very ends it would be cut.
        if (side === "below" && (ratio * length < EDGE_PX || (1 - ratio) * length < EDGE_PX)) return null;
        const place = `${ratio * 100}%`;
        return (
          <span key={value} data-drawn-label={true} style={side === "below" ? { left: place } : { bottom: place }}>
            {say(value)}
          </span>
        );
      })}
    </div>
  );
}
