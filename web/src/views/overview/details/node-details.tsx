// The details of a node: state, units, faults, workloads, and metrics of the last hours.

import { useContext, useMemo } from "react";
import type { NodeDetail } from "../../../api/generated.ts";
import { HOUR_MS } from "../../../base/durations.ts";
import { formatBytes, formatCount, formatPlural } from "../../../base/format.ts";
import { groupRows } from "../../../data/aggregate.ts";
import { useNode } from "../../../data/queries.ts";
import { useUnits } from "../../../data/units.ts";
import { FaultList, TurnList } from "../../../parts/faults/fault-list.tsx";
import { Card, OpenLink, Panel, PanelHead } from "../../../parts/panel/panel.tsx";
import { select } from "../../../state/changes.ts";
import { toMinute } from "../../../state/time.ts";
import { useMoment } from "../../../state/use-moment.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { ClockContext } from "../../../widgets/clock-context.ts";
import { Facts } from "../../../widgets/facts.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { UnitMarks } from "../unit-marks.tsx";
import { NODE_TONES, stateWords } from "../words.ts";
import { findLimits } from "./limits.ts";
import { MetricHistory } from "./metric-history.tsx";
import styles from "./node-details.module.css";

const HISTORY_MS = 6 * HOUR_MS;

export function NodeDetails({ name }: { name: string }) {
  const detail = useNode(name);
  return (
    <Panel>
      {detail.value === undefined && <PanelHead kind="Node" title={name} />}
      <Frame source={detail} what="the node">
        {(value) => <Content detail={value} />}
      </Frame>
    </Panel>
  );
}

function Content({ detail: { node, workloads, faults, turns } }: { detail: NodeDetail }) {
  const change = useChangeScreen();
  const units = useUnits().value;
  const rows = units ? (groupRows(units.snapshot.names("node")).get(node.node) ?? []) : [];
  const range = useRecentRange();
  return (
    <>
      <PanelHead
        kind="Node"
        title={node.node}
        tag={
          <span className={styles.tags}>
            <Tag tone={NODE_TONES[node.state]}>{stateWords(node.state)}</Tag>
            {node.is_stale && <Tag tone="warn">stale</Tag>}
          </span>
        }
        detail={[node.machine_type, ...node.partitions].filter(Boolean).join(" · ")}
      />
      {node.reason && <p className={styles.reason}>{node.reason}</p>}
      {units && rows.length > 0 && (
        <Card title={`${node.gpus_allocated} of ${formatPlural(node.gpu_count, "GPU")} allocated`}>
          <UnitMarks
            units={units}
            rows={rows}
            most={64}
            onChoose={(unit) => change(select({ kind: "unit", key: unit }))}
          />
        </Card>
      )}
      {faults.length > 0 && (
        <Card title="Faults in 30 days">
          <FaultList faults={faults} namesUnits />
        </Card>
      )}
      {workloads.length > 0 && (
        <Card title={formatPlural(workloads.length, "workload")}>
          <ul className={styles.workloads}>
            {workloads.map((workload) => (
              <li key={workload.workload}>
                <OpenLink kind="workload" name={workload.workload}>
                  {workload.name ?? workload.workload}
                </OpenLink>
                <small>{workload.user}</small>
                <span>{formatPlural(workload.gpus_requested, "GPU")}</span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      <Card title="Last 6 hours">
        <MetricHistory
          subject={{ node: node.node }}
          range={range}
          unitCount={node.gpu_count}
          {...(units && rows.length > 0 ? { tops: findLimits(units, rows) } : {})}
        />
      </Card>
      {turns.length > 0 && (
        <Card title="In and out of service">
          <TurnList turns={turns} />
        </Card>
      )}
      <Card title="Host">
        <Facts
          facts={[
            { name: "rack", value: node.rack },
            { name: "CPUs", value: node.cpu_count === null ? null : formatCount(node.cpu_count) },
            { name: "memory", value: node.memory_bytes === null ? null : formatBytes(node.memory_bytes) },
            { name: "driver", value: node.driver_version },
            { name: "features", value: node.features.length > 0 ? node.features.join(", ") : null },
          ]}
        />
      </Card>
    </>
  );
}

/** Begins where the panel was opened, so that the question stays the same while time goes on; or before a past minute. */
export function useRecentRange() {
  const clock = useContext(ClockContext);
  const moment = useMoment();
  return useMemo(() => ({ startMs: toMinute(moment ?? clock.now()) - HISTORY_MS, endMs: moment }), [clock, moment]);
}
