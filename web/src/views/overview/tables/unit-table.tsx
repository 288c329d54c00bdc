// Units as a table: every GPU, MIG instance and requested GPU with its newest metrics and who holds it. A row is an index
// into the columns of the snapshot.

import { type NameColumn, type NumberColumn, nameAt, numberAt } from "../../../api/columns.ts";
import { formatBytes, formatQuantity, formatWatts } from "../../../base/format.ts";
import { findMetric, type Units } from "../../../data/units.ts";
import type { TableColumn } from "../../../state/screen.ts";
import { Missing, Name, Text } from "../../../widgets/data-table/cells.tsx";
import type { Column } from "../../../widgets/data-table/columns.ts";
import { Meter } from "../../../widgets/meter.tsx";
import { UnitMark } from "../../../widgets/unit-mark.tsx";
import { unitColumns } from "../filter/table-columns.ts";
import { toUnitState } from "../words.ts";
import type { TableSpec } from "./table-spec.ts";

type UnitColumn = Column<number> & { readonly key: TableColumn<"units"> };

export function unitTable(units: Units): TableSpec<number> {
  const { snapshot } = units;
  const unit = snapshot.names("unit");
  return {
    rows: countRows(snapshot.rowCount),
    columns: [...placeColumns(units), ...metricColumns(units), ...holderColumns(units)],
    initialSort: { column: "unit", descending: false },
    keyOf: (row) => nameAt(unit, row) ?? "",
    selectionOf: (row) => ({ kind: "unit", key: nameAt(unit, row) ?? "" }),
    attributes: unitColumns(units),
  };
}

let counted: readonly number[] = [];

/** 0, 1, 2 …: the same list for every tick. */
function countRows(rowCount: number): readonly number[] {
  if (counted.length !== rowCount) counted = Array.from({ length: rowCount }, (_, row) => row);
  return counted;
}

function placeColumns(units: Units): readonly UnitColumn[] {
  const unit = units.snapshot.names("unit");
  const state = units.snapshot.names("unit_state");
  const reason = units.snapshot.names("node_reason");
  const profile = units.snapshot.names("mig_profile");
  const util = findMetric(units, "gpu_util_ratio");
  return [
    {
      key: "unit",
      title: "Unit",
      width: 148,
      grow: 1.2,
      rank: 0,
      cell: (row) => {
        const shape = toUnitState(nameAt(state, row));
        const why = shape === "unavailable" ? nameAt(reason, row) : null;
        return (
          <Name
            mark={<UnitMark state={shape} ratio={util && numberAt(util, row)} tip={why ? `${shape}: ${why}` : shape} />}
            name={nameAt(unit, row) ?? ""}
            detail={nameAt(profile, row)}
          />
        );
      },
      // Rows come by node and index, which is the order of names as people count.
      sortKey: (row) => row,
      csv: (row) => nameAt(unit, row),
    },
    nameColumn("partition", "Partition", units.snapshot.names("partition"), 92, 6),
    nameColumn("type", "Type", units.snapshot.names("machine_type"), 84, 7),
  ];
}

function metricColumns(units: Units): readonly UnitColumn[] {
  const power = findMetric(units, "power_watts");
  const powerLimit = units.snapshot.numbers("power_limit_watts");
  const used = findMetric(units, "memory_used_bytes");
  const memory = units.snapshot.numbers("memory_bytes");
  const util = findMetric(units, "gpu_util_ratio");
  const temperature = findMetric(units, "gpu_temperature_celsius");
  return [
    {
      ...numberColumn("util", "Utilization", util, 116, 1),
      cell: (row) => orMissing(util, row, (value) => <Meter ratio={value} />),
    },
    {
      ...numberColumn("power", "Power", power, 68, 4),
      align: "right",
      cell: (row) =>
        orMissing(power, row, (value) => {
          const limit = numberAt(powerLimit, row);
          return <span data-tip={limit === null ? undefined : `of ${formatWatts(limit)}`}>{formatWatts(value)}</span>;
        }),
    },
    {
      ...numberColumn("memory", "Memory", used, 124, 5),
      cell: (row) =>
        orMissing(used, row, (value) => {
          const total = numberAt(memory, row);
          const tip = total === null ? undefined : `of ${formatBytes(total)}`;
          return (
            <Meter ratio={total === null ? null : value / total} look="plain" text={formatBytes(value)} tip={tip} />
          );
        }),
    },
    {
      ...numberColumn("temperature", "Temp.", temperature, 64, 8),
      align: "right",
      cell: (row) => orMissing(temperature, row, (value) => formatQuantity(value, "celsius")),
    },
  ];
}

function holderColumns({ snapshot }: Units): readonly UnitColumn[] {
  const workload = snapshot.names("workload");
  const name = snapshot.names("workload_name");
  const holders = snapshot.numbers("holders");
  return [
    nameColumn("user", "User", snapshot.names("user"), 76, 2),
    {
      ...nameColumn("workload", "Workload", workload, 112, 3),
      grow: 1.2,
      cell: (row) => {
        const others = (numberAt(holders, row) ?? 0) - 1;
        const title = nameAt(name, row) ?? nameAt(workload, row);
        return <Text>{title && others > 0 ? `${title} and ${others} more` : title}</Text>;
      },
      sortKey: (row) => nameAt(name, row) ?? nameAt(workload, row),
    },
    nameColumn("project", "Project", snapshot.names("project"), 88, 9),
  ];
}

function nameColumn(key: UnitColumn["key"], title: string, names: NameColumn, width: number, rank: number): UnitColumn {
  return {
    key,
    title,
    width,
    grow: 0.8,
    rank,
    cell: (row) => <Text>{nameAt(names, row)}</Text>,
    sortKey: (row) => nameAt(names, row),
    csv: (row) => nameAt(names, row),
  };
}

function numberColumn(
  key: UnitColumn["key"],
  title: string,
  values: NumberColumn | null,
  width: number,
  rank: number,
): Omit<UnitColumn, "cell"> {
  const read = (row: number) => (values === null ? null : numberAt(values, row));
  return { key, title, width, grow: 0, rank, isLargestFirst: true, sortKey: read, csv: read };
}

function orMissing(values: NumberColumn | null, row: number, draw: (value: number) => React.ReactNode) {
  const value = values === null ? null : numberAt(values, row);
  return value === null ? <Missing /> : draw(value);
}
