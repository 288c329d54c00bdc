// Columns of the queue table: position, workload, requested GPUs, wait, likely start and reason.

import type { QueueRow } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import type { QueueColumn } from "../../../state/scheduling.ts";
import { Missing, Name, Text } from "../../../widgets/data-table/cells.tsx";
import type { Column } from "../../../widgets/data-table/columns.ts";
import { StartBar, StartScale } from "./start-bar.tsx";
import { nativeId, type StartAxis } from "./words.ts";

type QueueTableColumn = Column<QueueRow> & { readonly key: QueueColumn };

export function queueColumns(axis: StartAxis): readonly QueueTableColumn[] {
  return [...workloadColumns(), ...timeColumns(axis)];
}

function workloadColumns(): readonly QueueTableColumn[] {
  return [
    {
      key: "position",
      title: "#",
      tip: "Position in the partition's queue; – if the workload waits for something other than GPUs",
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
      tip: "Requested GPUs",
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

function timeColumns(axis: StartAxis): readonly QueueTableColumn[] {
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
      tip: "Bar: 80 % interval of the sampled futures; dot: median; tick: latest start by time limits; diamond: the scheduler's estimate. The axis is compressed for later times",
      scale: <StartScale axis={axis} />,
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
      title: "Reason",
      width: 130,
      grow: 1.4,
      rank: 5,
      cell: ({ reason_text }) => <Text isMuted>{reason_text}</Text>,
      sortKey: ({ reason }) => reason,
      csv: ({ reason }) => reason,
    },
  ];
}
