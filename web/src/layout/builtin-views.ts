// The built-in views: the figures of the HPC2lusterScape paper, as view documents.

import { DEFAULT_MARK, DEFAULT_VIEW, makeLayer, type View } from "./grammar.ts";

export interface BuiltinView {
  /** Never changes: links and start pages name it. */
  readonly key: string;
  readonly title: string;
  readonly view: View;
  /** How it is colored, by the keys of a link; left out: plainly. */
  readonly look?: Readonly<Record<string, readonly string[]>>;
}

const LARGEST_FIRST = { by: "count", order: "descending", of: null } as const;

export const BUILTIN_VIEWS: readonly BuiltinView[] = [
  {
    key: "who-uses-what",
    title: "Who uses what",
    view: {
      ...DEFAULT_VIEW,
      units: "gpus",
      layers: [
        makeLayer("project", { sort: LARGEST_FIRST, aspect: 1.2 }),
        makeLayer("user", { sort: LARGEST_FIRST, aspect: 1.2 }),
        makeLayer("workload", { sort: LARGEST_FIRST, label: false, aspect: 1.2 }),
      ],
      mark: { ...DEFAULT_MARK, color: "gpu_util_ratio" },
    },
  },
  {
    key: "projects-by-partition",
    title: "Projects by partition",
    view: {
      ...DEFAULT_VIEW,
      units: "gpus",
      layers: [
        makeLayer("partition", { layout: "listX", sort: LARGEST_FIRST }),
        makeLayer("project", { layout: "fillX", size: "uniform", sort: LARGEST_FIRST }),
      ],
      mark: {
        ...DEFAULT_MARK,
        layout: "fillY",
        from: "bottom",
        sort: { by: "gpu_util_ratio", order: "descending" },
        color: "gpu_util_ratio",
      },
    },
  },
  {
    key: "waiting-by-resource-type",
    title: "Waiting by resource type",
    view: {
      ...DEFAULT_VIEW,
      units: "requested",
      layers: [
        // Held workloads, and those that wait for something else than GPUs, are not demand: they are drawn separately.
        makeLayer("waits_for", { sort: LARGEST_FIRST, aspect: 1.5 }),
        makeLayer("resource_type", { sort: LARGEST_FIRST, aspect: 1.5 }),
        makeLayer("workload", {
          layout: "listX",
          sort: { by: "value", order: "descending", of: "wait_s" },
          label: false,
        }),
      ],
      mark: { ...DEFAULT_MARK, color: "wait_s" },
    },
    // One that waits for a day would make all others look alike.
    look: { color_scale: ["log"] },
  },
  {
    key: "fragmentation-by-host",
    title: "Fragmentation by host",
    view: {
      ...DEFAULT_VIEW,
      units: "gpus",
      layers: [
        makeLayer("node_partitions", { layout: "listX", sort: LARGEST_FIRST }),
        makeLayer("node", { layout: "listX", size: "uniform" }),
      ],
      // Small workloads on many hosts are what keeps large ones waiting.
      mark: { ...DEFAULT_MARK, color: "gpus_requested" },
    },
    look: { color_scale: ["log"] },
  },
];
