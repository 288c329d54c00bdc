// Waiting workloads as a table: their place, what they ask for, since when, when they likely start, and why they wait.

import type { QueueRow } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import type { QueueColumn } from "../../../state/scheduling.ts";
import { Missing, Name, Text } from "../../../widgets/data-table/cells.tsx";
import type { Column } from "../../../widgets/data-table/columns.ts";
import { StartBar } from "./start-bar.tsx";
import { nativeId, type StartAxis } from "./words.ts";

type Shown = Column<QueueRow> & { readonly key: QueueColumn };

export function queueColumns(axis: StartAxis): readonly Shown[] {
  return [...whoColumns(), ...whenColumns(axis)];
}

function whoColumns(): readonly Shown[] {
  return [
    {
      key: "position",
      title: "#",
      tip: "Place in the partition's queue; – where something else than room holds it",
      width: 44,
      grow: 0,
      align: "right",
      rank: 0,
      cell: ({ position }) => (position === null ? <Missing /> : formatCount(position)),
      sortKey: ({ position, partition }) => `${partition} ${String(position ?? 1e9).padStart(10, "0")}`,
      csv: ({ position }) => position,
    },
    {
      key: "workload",
      title: "Workload",
      width: 130,
      grow: 1,
      rank: 0,
      cell: ({ workload, name }) => (
        <Name mark={null} name={name ?? nativeId(workload)} detail={name ? nativeId(workload) : null} />
      ),
      sortKey: ({ workload, name }) => name ?? workload,
      csv: ({ workload }) => workload,
    },
    {
      key: "user",
      title: "User",
      width: 74,
      grow: 0.3,
      rank: 4,
      cell: ({ user }) => <Text>{user}</Text>,
      sortKey: ({ user }) => user,
      csv: ({ user }) => user,
    },
    {
      key: "partition",
      title: "Partition",
      width: 84,
      grow: 0.2,
      rank: 3,
      cell: ({ partition }) => <Text isMuted>{partition}</Text>,
      sortKey: ({ partition }) => partition,
      csv: ({ partition }) => partition,
    },
    {
      key: "asked",
      title: "GPUs",
      tip: "GPUs asked for, and on how many nodes",
      width: 58,
      grow: 0,
      align: "right",
      rank: 1,
      isLargestFirst: true,
      cell: ({ gpus, nodes }) => (
        <span title={`${gpus} GPUs on ${nodes} ${nodes === 1 ? "node" : "nodes"}`}>{formatCount(gpus)}</span>
      ),
      sortKey: ({ gpus }) => gpus,
      csv: ({ gpus }) => gpus,
    },
  ];
}

function whenColumns(axis: StartAxis): readonly Shown[] {
  return [
    {
      key: "waited",
      title: "Waited",
      width: 88,
      grow: 0,
      align: "right",
      rank: 2,
      isLargestFirst: true,
      cell: ({ waited_s }) => formatDuration(waited_s),
      sortKey: ({ waited_s }) => waited_s,
      csv: ({ waited_s }) => waited_s,
    },
    {
      key: "start",
      title: "Likely start",
      tip: "Bar: 80 % of the sampled futures; dot: their middle; tick: latest start by limits; diamond: the scheduler's own estimate. Later times stand closer together",
      width: 150,
      grow: 1.2,
      rank: 0,
      cell: ({ likely, planned_at, scheduler_at }) => (
        <StartBar axis={axis} likely={likely} plannedAt={planned_at} schedulerAt={scheduler_at} />
      ),
      sortKey: ({ likely, planned_at }) => likely?.likely_at ?? planned_at,
      csv: ({ likely, planned_at }) => likely?.likely_at ?? planned_at,
    },
    {
      key: "reason",
      title: "Why",
      width: 130,
      grow: 1.4,
      rank: 5,
      cell: ({ reason_text }) => <Text isMuted>{reason_text}</Text>,
      sortKey: ({ reason }) => reason,
      csv: ({ reason }) => reason,
    },
  ];
}
