// The minimap: the whole picture in a corner, with a frame around the visible part; dragging moves it. Shown only while
// zoomed in.

import { type PointerEvent, useCallback, useEffect, useRef, useSyncExternalStore } from "react";
import type { Marks } from "../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import styles from "./minimap.module.css";
import { mapSize, rasterizeUnits } from "./minimap-raster.ts";
import type { Stage } from "./stage.ts";
import { pointOf } from "./use-pointer.ts";

const MOST = { width: 176, height: 128 } as const;

interface MinimapProps {
  readonly stage: Stage;
  readonly layout: UnitLayout;
  readonly marks: Marks;
}

export function Minimap(props: MinimapProps) {
  const { stage } = props;
  const watch = useCallback((watcher: () => void) => stage.watch(watcher), [stage]);
  const isShown = useSyncExternalStore(watch, () => stage.window !== null);
  return isShown ? <ShownMap {...props} /> : null;
}

function ShownMap({ stage, layout, marks }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const { scale, width, height } = mapSize(layout.bounds, MOST);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || marks.color.length !== layout.size.length) return;
    const density = Math.max(1, Math.round(window.devicePixelRatio));
    const size = { width: width * density, height: height * density };
    context.canvas.width = size.width;
    context.canvas.height = size.height;
    context.putImageData(new ImageData(rasterizeUnits(layout, marks, scale * density, size), size.width), 0, 0);
  }, [layout, marks, scale, width, height]);
  useEffect(() => {
    // Moved directly with every frame, without rendering the component.
    const place = () => {
      const visible = stage.window;
      if (visible === null || frame.current === null) return;
      const left = Math.max(0, visible.left * scale);
      const top = Math.max(0, visible.top * scale);
      const { style } = frame.current;
      style.transform = `translate(${left}px, ${top}px)`;
      style.width = `${Math.max(4, Math.min(width, (visible.left + visible.width) * scale) - left)}px`;
      style.height = `${Math.max(4, Math.min(height, (visible.top + visible.height) * scale) - top)}px`;
    };
    place();
    return stage.watch(place);
  }, [stage, scale, width, height]);
  const move = (event: PointerEvent) => {
    const [x, y] = pointOf(event);
    stage.center(x / scale, y / scale);
  };
  return (
    <div
      className={styles.map}
      style={{ width, height }}
      role="img"
      aria-label="Minimap of the picture; drag to move"
      onPointerDown={(event) => {
        event.stopPropagation();
        event.currentTarget.setPointerCapture(event.pointerId);
        move(event);
      }}
      onPointerMove={(event) => {
        event.stopPropagation();
        if (event.buttons === 1) move(event);
      }}
      onPointerUp={(event) => event.stopPropagation()}
      onDoubleClick={(event) => event.stopPropagation()}
    >
      <canvas ref={canvas} />
      <div ref={frame} className={styles.window} />
    </div>
  );
}
