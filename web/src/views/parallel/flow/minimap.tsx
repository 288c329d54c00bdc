// Overview of the whole flow with the visible part; click or drag to move.

import type { PointerEvent } from "react";
import styles from "./flow.module.css";
import type { Box, FlowLayout } from "./layout.ts";

const [WIDTH, HEIGHT] = [240, 44];

interface MinimapProps {
  readonly layout: FlowLayout;
  readonly viewport: Box;
  onMove(x: number): void;
}

export function Minimap({ layout, viewport, onMove }: MinimapProps) {
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
        data-viewport={true}
        x={viewport.x}
        y={viewport.y}
        width={Math.min(viewport.width, width)}
        height={Math.min(viewport.height, height)}
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
