// The table of nodes: units as squares, utilization, and problems.

import { numberAt } from "../../../api/columns.ts";
import type { NodeAnswer } from "../../../api/generated.ts";
import { formatBytes, formatWatts } from "../../../base/format.ts";
import { type Aggregate, aggregateBy, groupRows } from "../../../data/aggregate.ts";
import { findMetric, type Units } from "../../../data/units.ts";
import type { TableColumn } from "../../../state/screen.ts";
import styles from "../../../widgets/data-table/cells.module.css";
import { Missing, Name, Text } from "../../../widgets/data-table/cells.tsx";
import type { Column } from "../../../widgets/data-table/columns.ts";
import { Meter } from "../../../widgets/meter.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { nodeColumns } from "../filter/table-columns.ts";
import { UnitMarks } from "../unit-marks.tsx";
import { NODE_TONES, stateWords } from "../words.ts";
import type { TableSpec } from "./table-spec.ts";

type NodeColumn = Column<NodeAnswer> & { readonly key: TableColumn<"nodes"> };

export function nodeTable(nodes: readonly NodeAnswer[], units: Units | undefined): TableSpec<NodeAnswer> {
  const rowsOf = units ? groupRows(units.snapshot.names("node")) : new Map<string, readonly number[]>();
  return {
    rows: nodes,
    columns: [...stateColumns(), ...unitColumns(units, rowsOf), ...hardwareColumns()],
    initialSort: { column: "node", descending: false },
    keyOf: (row) => row.node,
    selectionOf: (row) => ({ kind: "node", key: row.node }),
    attributes: nodeColumns(nodes, units),
  };
}

function stateColumns(): readonly NodeColumn[] {
  return [
    {
      key: "node",
      title: "Node",
      width: 108,
      grow: 1,
      rank: 0,
      cell: (row) => <Name mark={null} name={row.node} />,
      sortKey: (row) => row.node,
      csv: (row) => row.node,
    },
    {
      key: "state",
      title: "State",
      width: 132,
      grow: 1.6,
      rank: 2,
      cell: (row) => (
        <>
          {NODE_TONES[row.state] === "neutral" ? (
            <Text isMuted>{stateWords(row.state)}</Text>
          ) : (
            <Tag tone={NODE_TONES[row.state]}>{stateWords(row.state)}</Tag>
          )}
          {row.is_stale && (
            <Tag tone="warn" tip="Its exporter does not respond">
              stale
            </Tag>
          )}
          {row.reason && <Text isMuted>{row.reason}</Text>}
        </>
      ),
      sortKey: (row) => row.state,
      csv: (row) => (row.is_stale ? `${row.state}, stale` : row.state),
    },
    {
      key: "partition",
      title: "Partition",
      width: 96,
      grow: 1,
      rank: 4,
      cell: (row) => <Text>{row.partitions.join(", ")}</Text>,
      sortKey: (row) => row.partitions.join(", ") || null,
      csv: (row) => row.partitions.join(" "),
    },
    plainColumn("type", "Type", 84, 6, (row) => row.machine_type),
  ];
}

function unitColumns(units: Units | undefined, rowsOf: ReadonlyMap<string, readonly number[]>): readonly NodeColumn[] {
  const byNode = units?.snapshot.names("node");
  const empty: ReadonlyMap<string, Aggregate> = new Map();
  const util = byNode && units ? aggregateBy(byNode, heldOnly(units, findMetric(units, "gpu_util_ratio"))) : empty;
  const power = byNode && units ? aggregateBy(byNode, findMetric(units, "power_watts")) : empty;
  return [
    {
      key: "gpus",
      title: "GPUs",
      tip: "Each square is one unit: filled by utilization, outlined if free",
      width: 160,
      grow: 0,
      rank: 1,
      isLargestFirst: true,
      cell: (row) => (
        <>
          {units && <UnitMarks units={units} rows={rowsOf.get(row.node) ?? []} most={8} />}
          <span className={styles.held}>
            {row.gpus_allocated}/{row.gpu_count}
          </span>
        </>
      ),
      sortKey: (row) => row.gpus_allocated,
      csv: (row) => `${row.gpus_allocated}/${row.gpu_count}`,
    },
    {
      key: "util",
      title: "Utilization",
      tip: "Mean over its allocated units",
      width: 124,
      grow: 0.6,
      rank: 3,
      isLargestFirst: true,
      cell: (row) => {
        const value = util.get(row.node);
        return value ? <Meter ratio={value.mean} range={[value.min, value.max]} /> : <Missing />;
      },
      sortKey: (row) => util.get(row.node)?.mean ?? null,
      csv: (row) => util.get(row.node)?.mean,
    },
    {
      key: "power",
      title: "Power",
      tip: "Sum over its GPUs",
      width: 76,
      grow: 0,
      rank: 5,
      align: "right",
      isLargestFirst: true,
      cell: (row) => formatWatts(power.get(row.node)?.sum),
      sortKey: (row) => power.get(row.node)?.sum ?? null,
      csv: (row) => power.get(row.node)?.sum,
    },
  ];
}

/** Values of units that somebody holds; an idle unit's 0 % says nothing of how well the others are used. */
function heldOnly({ snapshot }: Units, values: Float32Array | null): Float32Array | null {
  if (values === null) return null;
  const holders = snapshot.numbers("holders");
  return values.map((value, row) => ((numberAt(holders, row) ?? 0) > 0 ? value : Number.NaN));
}

function hardwareColumns(): readonly NodeColumn[] {
  return [
    {
      key: "memory",
      title: "Memory",
      tip: "Main memory of the host",
      width: 76,
      grow: 0,
      rank: 8,
      align: "right",
      isLargestFirst: true,
      cell: (row) => formatBytes(row.memory_bytes),
      sortKey: (row) => row.memory_bytes,
      csv: (row) => row.memory_bytes,
    },
    plainColumn("rack", "Rack", 64, 7, (row) => row.rack),
    plainColumn("driver", "Driver", 84, 9, (row) => row.driver_version),
  ];
}

function plainColumn(
  key: NodeColumn["key"],
  title: string,
  width: number,
  rank: number,
  read: (row: NodeAnswer) => string | null,
): NodeColumn {
  return { key, title, width, grow: 0.6, rank, cell: (row) => <Text>{read(row)}</Text>, sortKey: read, csv: read };
}
