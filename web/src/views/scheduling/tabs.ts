// The tabs of the scheduling page. To add one, add a folder and an entry here.

import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import type { SchedulingTab } from "../../state/scheduling.ts";

export interface Tab {
  readonly name: SchedulingTab;
  readonly title: string;
  readonly component: LazyExoticComponent<ComponentType>;
}

export const TABS: readonly Tab[] = [
  { name: "queue", title: "Queue", component: lazy(() => import("./queue/queue-tab.tsx")) },
  { name: "history", title: "History", component: lazy(() => import("./history/history-tab.tsx")) },
  { name: "simulator", title: "Simulator", component: lazy(() => import("./simulator/simulator-tab.tsx")) },
  { name: "quality", title: "Predictions", component: lazy(() => import("./quality/quality-tab.tsx")) },
];
