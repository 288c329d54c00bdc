// The path of groups around the visible part, outermost first, while the picture is zoomed. Each entry zooms to its
// group.

import { useCallback, useMemo, useSyncExternalStore } from "react";
import { labelOf, type UnitLayout } from "../../../layout/layout.ts";
import { Icon } from "../../../widgets/icon.tsx";
import styles from "./breadcrumb.module.css";
import { findPath } from "./groups.ts";
import type { Stage } from "./stage.ts";

/** Nothing while everything is shown, also where the details cover some of it. */
function readPath(stage: Stage, layout: UnitLayout): string | null {
  const window = stage.isFitted ? null : stage.window;
  return window && findPath(layout, window).join(" ");
}

export function Breadcrumb({ stage, layout }: { stage: Stage; layout: UnitLayout }) {
  const watch = useCallback((watcher: () => void) => stage.watch(watcher), [stage]);
  // As text: the camera moves with every frame, the path rarely.
  const key = useSyncExternalStore(watch, () => readPath(stage, layout));
  const path = useMemo(() => (key ? key.split(" ").map(Number) : []), [key]);
  if (key === null) return null;
  return (
    <nav
      className={styles.path}
      aria-label="Zoomed to"
      onPointerDown={(event) => event.stopPropagation()}
      onPointerMove={(event) => event.stopPropagation()}
      onDoubleClick={(event) => event.stopPropagation()}
    >
      <button type="button" onClick={() => stage.fit()}>
        Everything
      </button>
      {path.map((group, index) => (
        <span key={group}>
          <Icon name="chevron" size={10} />
          <button
            type="button"
            aria-current={index === path.length - 1 ? "location" : undefined}
            onClick={() => stage.zoomToGroup(group)}
          >
            {labelOf(layout, group)}
          </button>
        </span>
      ))}
    </nav>
  );
}
