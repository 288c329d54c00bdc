// The table of workloads: owner, size, utilization, waiting and running time.

import type { WorkloadAnswer } from "../../../api/generated.ts";
import { formatBytes, formatCount, formatRatio, formatWatts } from "../../../base/format.ts";
import { formatDuration, formatExact } from "../../../base/time.ts";
import { nativeId } from "../../../base/workload-id.ts";
import { type Aggregate, aggregateBy } from "../../../data/aggregate.ts";
import { findMetric, type Units } from "../../../data/units.ts";
import type { TableColumn } from "../../../state/screen.ts";
import styles from "../../../widgets/data-table/cells.module.css";
import { Missing, Name, Text } from "../../../widgets/data-table/cells.tsx";
import type { Column } from "../../../widgets/data-table/columns.ts";
import { Meter } from "../../../widgets/meter.tsx";
import { UnitMark } from "../../../widgets/unit-mark.tsx";
import { workloadColumns } from "../filter/table-columns.ts";
import { stateWords, workloadMark } from "../words.ts";
import type { TableSpec } from "./table-spec.ts";

type WorkloadColumn = Column<WorkloadAnswer> & { readonly key: TableColumn<"workloads"> };

interface Measured {
  readonly util: ReadonlyMap<string, Aggregate>;
  readonly power: ReadonlyMap<string, Aggregate>;
  readonly memory: ReadonlyMap<string, Aggregate>;
}

export function workloadTable(
  workloads: readonly WorkloadAnswer[],
  units: Units | undefined,
): TableSpec<WorkloadAnswer> {
  const measured = measureWorkloads(units);
  return {
    rows: workloads,
    columns: [...namingColumns(measured), ...measuredColumns(measured), ...timeColumns()],
    initialSort: { column: "gpus", descending: true },
    keyOf: (row) => row.workload,
    selectionOf: (row) => ({ kind: "workload", key: row.workload }),
    attributes: workloadColumns(workloads, units),
  };
}

function measureWorkloads(units: Units | undefined): Measured {
  if (!units) return { util: new Map(), power: new Map(), memory: new Map() };
  const holders = units.snapshot.names("workload");
  return {
    util: aggregateBy(holders, findMetric(units, "gpu_util_ratio")),
    power: aggregateBy(holders, findMetric(units, "power_watts")),
    memory: aggregateBy(holders, findMetric(units, "memory_used_bytes")),
  };
}

function namingColumns({ util }: Measured): readonly WorkloadColumn[] {
  return [
    {
      key: "workload",
      title: "Workload",
      width: 160,
      grow: 1.8,
      rank: 0,
      cell: (row) => (
        <Name
          mark={
            <UnitMark
              state={workloadMark(row.state)}
              ratio={util.get(row.workload)?.mean ?? null}
              tip={stateWords(row.state)}
            />
          }
          name={row.name ?? row.workload}
          detail={row.name ? nativeId(row.workload) : null}
        />
      ),
      sortKey: (row) => row.name ?? row.workload,
      csv: (row) => row.workload,
    },
    textColumn("user", "User", 76, 0.8, 3),
    textColumn("project", "Project", 84, 0.8, 4),
    textColumn("partition", "Partition", 92, 0.8, 7),
    {
      key: "gpus",
      title: "GPUs",
      width: 64,
      grow: 0,
      rank: 1,
      align: "right",
      isLargestFirst: true,
      cell: (row) => <span data-tip={row.resource_type ?? undefined}>{formatCount(row.gpus_requested)}</span>,
      sortKey: (row) => row.gpus_requested,
      csv: (row) => row.gpus_requested,
    },
  ];
}

function measuredColumns({ util, power, memory }: Measured): readonly WorkloadColumn[] {
  return [
    {
      key: "util",
      title: "Utilization",
      tip: "Mean over its GPUs now; the thin marks show the minimum and maximum",
      width: 124,
      grow: 0.6,
      rank: 2,
      isLargestFirst: true,
      cell: (row) => {
        const value = util.get(row.workload);
        if (!value) return row.state === "running" ? <Meter ratio={null} /> : <Missing />;
        return <Meter ratio={value.mean} range={[value.min, value.max]} tip={describeRange(value)} />;
      },
      sortKey: (row) => util.get(row.workload)?.mean ?? null,
      csv: (row) => util.get(row.workload)?.mean,
    },
    {
      key: "power",
      title: "Power",
      tip: "Sum over its GPUs now",
      width: 76,
      grow: 0,
      rank: 8,
      align: "right",
      isLargestFirst: true,
      cell: (row) => known(power.get(row.workload)?.sum, formatWatts),
      sortKey: (row) => power.get(row.workload)?.sum ?? null,
      csv: (row) => power.get(row.workload)?.sum,
    },
    {
      key: "memory",
      title: "Memory",
      tip: "Mean GPU memory used per GPU",
      width: 80,
      grow: 0,
      rank: 9,
      align: "right",
      isLargestFirst: true,
      cell: (row) => known(memory.get(row.workload)?.mean, formatBytes),
      sortKey: (row) => memory.get(row.workload)?.mean ?? null,
      csv: (row) => memory.get(row.workload)?.mean,
    },
  ];
}

function timeColumns(): readonly WorkloadColumn[] {
  return [
    {
      key: "waited",
      title: "Waited",
      tip: "From submission to start, or until now",
      width: 92,
      grow: 0,
      rank: 6,
      align: "right",
      isLargestFirst: true,
      cell: (row) => <span data-tip={`submitted ${formatExact(row.submitted_at)}`}>{formatDuration(row.wait_s)}</span>,
      sortKey: (row) => row.wait_s,
      csv: (row) => row.wait_s,
    },
    {
      key: "running",
      title: "Running",
      tip: "Time since its start; for waiting workloads, the reason",
      width: 124,
      grow: 1.6,
      rank: 5,
      isLargestFirst: true,
      cell: (row) => <Running row={row} />,
      sortKey: (row) => row.run_s,
      csv: (row) => row.run_s,
    },
  ];
}

function Running({ row }: { row: WorkloadAnswer }) {
  if (row.state === "waiting") {
    return <Text isMuted>{row.pending_reason_text ?? row.pending_reason ?? "Waits"}</Text>;
  }
  if (row.run_s === null) return <Text isMuted>{stateWords(row.state)}</Text>;
  const limit = row.time_limit_s === null ? "" : ` of ${formatDuration(row.time_limit_s)}`;
  const ended = row.ended_at === null ? "" : `\nended ${formatExact(row.ended_at)}`;
  return (
    <span className={styles.cut} data-tip={`started ${formatExact(row.started_at)}${ended}`}>
      {formatDuration(row.run_s)}
      <span className={styles.muted}>{row.ended_at === null ? limit : ` · ${stateWords(row.state)}`}</span>
    </span>
  );
}

function textColumn(
  key: "user" | "project" | "partition",
  title: string,
  width: number,
  grow: number,
  rank: number,
): WorkloadColumn {
  return {
    key,
    title,
    width,
    grow,
    rank,
    cell: (row) => <Text>{row[key]}</Text>,
    sortKey: (row) => row[key],
    csv: (row) => row[key],
  };
}

function known(value: number | undefined, format: (value: number) => string) {
  return value === undefined ? <Missing /> : format(value);
}

function describeRange({ mean, min, max, sampled }: Aggregate): string {
  if (sampled === 1) return formatRatio(mean);
  return `mean ${formatRatio(mean)} · min ${formatRatio(min)} · max ${formatRatio(max)}`;
}
