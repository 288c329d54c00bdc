// Icons of the five layouts, on a 16 px grid.

import type { LayoutKind } from "../../../layout/grammar.ts";

type Box = readonly [x: number, y: number, width: number, height: number];

const BOXES: Readonly<Record<LayoutKind, readonly Box[]>> = {
  pack: [
    [1, 1, 8, 8],
    [10, 1, 5, 5],
    [10, 7, 5, 8],
    [1, 10, 3.5, 5],
    [5.5, 10, 3.5, 5],
  ],
  fillX: [
    [1, 1, 4, 14],
    [6, 1, 4, 14],
    [11, 1, 4, 14],
  ],
  fillY: [
    [1, 1, 14, 4],
    [1, 6, 14, 4],
    [1, 11, 14, 4],
  ],
  listX: [
    [1, 1, 6, 6],
    [8, 1, 3, 6],
    [12, 1, 3, 6],
    [1, 9, 3, 6],
    [5, 9, 6, 6],
  ],
  listY: [
    [1, 1, 6, 6],
    [1, 8, 6, 3],
    [1, 12, 6, 3],
    [9, 1, 6, 3],
    [9, 5, 6, 6],
  ],
};

export function LayoutIcon({ layout }: { layout: LayoutKind }) {
  return (
    <svg aria-hidden="true" width={16} height={16} viewBox="0 0 16 16" fill="currentColor">
      {BOXES[layout].map(([x, y, width, height]) => (
        <rect key={`${x} ${y}`} x={x} y={y} width={width} height={height} rx={0.8} />
      ))}
    </svg>
  );
}
