// Columns of the violation table: rule, workload, owner, GPU-hours, times and measured values.

import type { ViolationAnswer } from "../../../api/generated.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { formatExact } from "../../../base/time.ts";
import { type RuleColors, toCssColor } from "../../../parts/rules/rule-colors.ts";
import type { ViolationColumn } from "../../../state/violations.ts";
import { Name, Text } from "../../../widgets/data-table/cells.tsx";
import type { Column } from "../../../widgets/data-table/columns.ts";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { severityOrder } from "../narrow.ts";
import { formatHours, nativeId, SEVERITY_TONES } from "../words.ts";
import styles from "./violation-columns.module.css";

type ViolationTableColumn = Column<ViolationAnswer> & { readonly key: ViolationColumn };

export function violationColumns(colors: RuleColors): readonly ViolationTableColumn[] {
  return [
    {
      key: "rule",
      title: "Rule",
      width: 150,
      grow: 1,
      rank: 0,
      cell: (row) => (
        <Name
          mark={
            <i data-swatch={true} data-severity={row.severity} style={{ background: toCssColor(colors, row.rule) }} />
          }
          name={row.rule_name}
        />
      ),
      sortKey: (row) => `${severityOrder(row.severity)} ${row.rule_name}`,
      csv: (row) => row.rule,
    },
    {
      key: "workload",
      title: "Workload or node",
      width: 150,
      grow: 1.3,
      rank: 0,
      cell: (row) => <Name mark={null} name={nameOf(row)} detail={detailOf(row)} />,
      sortKey: nameOf,
      csv: (row) => row.workload,
    },
    nameColumn("user", "User", 70, 4),
    nameColumn("project", "Project", 84, 5),
    ...costColumns(),
    ...timeColumns(),
    {
      key: "readings",
      title: "Measured values",
      tip: "Statistics when the rule was last evaluated as broken",
      width: 150,
      grow: 1.6,
      rank: 6,
      cell: (row) => <Text isMuted>{row.readings}</Text>,
      sortKey: (row) => row.readings || null,
      csv: (row) => row.readings,
    },
  ];
}

const SOURCE = "source:";

/** A workload, or the node or source that broke a rule on hardware. */
function nameOf({ workload_name, node, workload }: ViolationAnswer): string {
  if (node !== null) return node;
  return workload_name ?? (workload.startsWith(SOURCE) ? workload.slice(SOURCE.length) : workload);
}

function detailOf({ workload_name, node, workload, units }: ViolationAnswer): string | null {
  if (node !== null) return units.length > 0 ? listUnits(units) : "node";
  if (workload.startsWith(SOURCE)) return "source";
  return workload_name ? nativeId(workload) : null;
}

function costColumns(): readonly ViolationTableColumn[] {
  return [
    {
      key: "gpus",
      title: "GPUs",
      tip: "GPUs that broke the rule",
      width: 54,
      grow: 0,
      rank: 2,
      align: "right",
      isLargestFirst: true,
      cell: (row) => (
        <span data-tip={row.units.length > 0 ? listUnits(row.units) : describeAllGpus(row)}>
          {formatCount(row.gpus)}
        </span>
      ),
      sortKey: (row) => row.gpus,
      csv: (row) => row.gpus,
    },
    {
      key: "gpu_hours",
      title: "GPU-hours",
      tip: "Held while the rule was broken, within the shown time range",
      width: 88,
      grow: 0,
      rank: 0,
      align: "right",
      isLargestFirst: true,
      cell: (row) => <b className={styles.hours}>{formatHours(row.gpu_hours)}</b>,
      sortKey: (row) => row.gpu_hours,
      csv: (row) => row.gpu_hours,
    },
  ];
}

function describeAllGpus({ node }: ViolationAnswer): string {
  return node === null ? "the whole workload" : "all GPUs of the node";
}

function timeColumns(): readonly ViolationTableColumn[] {
  return [
    {
      key: "since",
      title: "Since",
      width: 82,
      grow: 0,
      rank: 3,
      isLargestFirst: true,
      cell: (row) => <RelativeTime at={row.since} />,
      sortKey: (row) => row.since,
      csv: (row) => new Date(row.since).toISOString(),
    },
    {
      key: "until",
      title: "Until",
      tip: "Tinted: ongoing, in the color of the rule's severity",
      width: 82,
      grow: 0,
      rank: 1,
      isLargestFirst: true,
      cell: (row) => <Until row={row} />,
      sortKey: (row) => row.until ?? Number.MAX_SAFE_INTEGER,
      csv: (row) => (row.until === null ? null : new Date(row.until).toISOString()),
    },
  ];
}

function Until({ row: { until, mute, severity } }: { row: ViolationAnswer }) {
  if (mute) {
    const tip = `${until === null ? "ongoing" : `until ${formatExact(until)}`}; muted by ${mute.author}: ${mute.reason}`;
    return <Tag tip={tip}>muted</Tag>;
  }
  if (until === null) {
    return (
      <Tag tone={SEVERITY_TONES[severity]} tip={`Ongoing, ${severity}`}>
        now
      </Tag>
    );
  }
  return <RelativeTime at={until} />;
}

function nameColumn(key: "user" | "project", title: string, width: number, rank: number): ViolationTableColumn {
  return {
    key,
    title,
    width,
    grow: 0.5,
    rank,
    cell: (row) => <Text>{row[key]}</Text>,
    sortKey: (row) => row[key],
    csv: (row) => row[key],
  };
}

const MAX_UNITS = 8;

function listUnits(units: readonly string[]): string {
  const rest = units.length - MAX_UNITS;
  return units.slice(0, MAX_UNITS).join(", ") + (rest > 0 ? ` and ${formatPlural(rest, "more", "more")}` : "");
}
