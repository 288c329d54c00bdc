// The mark and the name.

import styles from "./logo.module.css";

const CELLS = Array.from({ length: 9 }, (_, index) => ({
  x: (index % 3) * 5.5,
  y: Math.floor(index / 3) * 5.5,
  isOdd: index === 4 || index === 8,
}));

export function Logo() {
  return (
    <span className={styles.logo}>
      <svg width="15" height="15" viewBox="0 0 15 15" aria-hidden="true">
        {CELLS.map(({ x, y, isOdd }) => (
          <rect
            key={`${x},${y}`}
            x={x}
            y={y}
            width="4"
            height="4"
            rx="1"
            fill={`var(--${isOdd ? "warn" : "accent"})`}
          />
        ))}
      </svg>
      <span>ClusterScape</span>
    </span>
  );
}
