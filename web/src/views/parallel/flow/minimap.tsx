// The whole flow in small, with what is in sight; a click or a drag moves there.

import type { PointerEvent } from "react";
import styles from "./flow.module.css";
import type { Box, FlowLayout } from "./layout.ts";

const [WIDTH, HEIGHT] = [240, 44];

interface MinimapProps {
  readonly layout: FlowLayout;
  readonly sight: Box;
  onMove(x: number): void;
}

export function Minimap({ layout, sight, onMove }: MinimapProps) {
  const { width, height } = layout.size;
  const move = (event: PointerEvent<SVGSVGElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    onMove(((event.clientX - box.left) / box.width) * width);
  };
  return (
    <svg
      className={styles.map}
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        move(event);
      }}
      onPointerMove={(event) => event.buttons === 1 && move(event)}
    >
      {layout.blocks.map((box, block) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block's place is its number
        <rect key={block} x={box.x} y={box.y} width={box.width} height={box.height} />
      ))}
      <rect
        data-sight={true}
        x={sight.x}
        y={sight.y}
        width={Math.min(sight.width, width)}
        height={Math.min(sight.height, height)}
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
