// The registry of views: a view is a folder under views/ and an entry here. The navigation shows them in this order.

import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import type { ViewName } from "../state/screen.ts";

export interface View {
  readonly name: ViewName;
  readonly title: string;
  readonly component: LazyExoticComponent<ComponentType>;
  /** Opened from the account menu, not from the navigation. */
  readonly isApart?: boolean;
}

export const VIEWS: readonly View[] = [
  { name: "overview", title: "Overview", component: lazy(() => import("../views/overview/index.tsx")) },
  { name: "rules", title: "Rules", component: lazy(() => import("../views/rules/index.tsx")) },
  { name: "diagnostics", title: "Diagnostics", component: lazy(() => import("../views/diagnostics/index.tsx")) },
  { name: "parallel", title: "Parallel", component: lazy(() => import("../views/parallel/index.tsx")) },
  { name: "scheduling", title: "Scheduling", component: lazy(() => import("../views/scheduling/index.tsx")) },
  { name: "runs", title: "Runs", component: lazy(() => import("../views/runs/index.tsx")) },
  { name: "usage", title: "Usage", component: lazy(() => import("../views/usage/index.tsx")) },
  { name: "job", title: "Job", component: lazy(() => import("../views/job/index.tsx")), isApart: true },
  { name: "access", title: "Access", component: lazy(() => import("../views/access/index.tsx")), isApart: true },
];
