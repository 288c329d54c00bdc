// The details of a workload: owner, resources, times, utilization, and why it waits.

import type { ExecutionAnswer, WorkloadAnswer, WorkloadDetail } from "../../../api/generated.ts";
import { formatCount, formatGpuHours, formatHours, formatPlural } from "../../../base/format.ts";
import { formatDuration, formatExact } from "../../../base/time.ts";
import { groupRows } from "../../../data/aggregate.ts";
import { useWorkload } from "../../../data/queries.ts";
import { useUnits } from "../../../data/units.ts";
import { Card, OpenLink, Panel, PanelHead } from "../../../parts/panel/panel.tsx";
import { select, setFilter } from "../../../state/changes.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { useNow } from "../../../widgets/clock-context.ts";
import { type Fact, Facts } from "../../../widgets/facts.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { UnitMarks } from "../unit-marks.tsx";
import { SOURCE_WORDS, stateWords, WORKLOAD_TONES } from "../words.ts";
import { Actions } from "./actions.tsx";
import { findLimits } from "./limits.ts";
import { MetricHistory } from "./metric-history.tsx";
import { RulesCard } from "./rules-card.tsx";
import styles from "./workload-details.module.css";

const MOST_MARKS = 256;
const MOST_NODES = 8;

export function WorkloadDetails({ name }: { name: string }) {
  const detail = useWorkload(name);
  return (
    <Panel>
      {detail.value === undefined && <PanelHead kind="Workload" title={name} />}
      <Frame source={detail} what="the workload">
        {(value) => <Content detail={value} />}
      </Frame>
    </Panel>
  );
}

function Content({ detail }: { detail: WorkloadDetail }) {
  const { workload, allocations } = detail;
  const change = useChangeScreen();
  const units = useUnits().value;
  const rows = units ? (groupRows(units.snapshot.names("workload")).get(workload.workload) ?? []) : [];
  return (
    <>
      <PanelHead
        kind={workload.kind === "session" ? "Session" : workload.kind === "run" ? "Run" : "Workload"}
        title={workload.name ?? workload.workload}
        tag={<Tag tone={WORKLOAD_TONES[workload.state]}>{stateWords(workload.state)}</Tag>}
        detail={<Owner workload={workload} />}
        actions={<Actions workload={workload.workload} isWaiting={workload.state === "waiting"} />}
      />
      {workload.state === "waiting" && <WhyItWaits workload={workload} />}
      <Card label="Facts">
        <Facts facts={facts(detail)} />
      </Card>
      {detail.executions.length > 0 && <Executions executions={detail.executions} />}
      {units && rows.length > 0 && workload.state !== "waiting" && (
        <Card title={formatPlural(rows.length, "unit")}>
          <UnitMarks
            units={units}
            rows={rows}
            most={MOST_MARKS}
            isByNode
            onChoose={(unit) => change(select({ kind: "unit", key: unit }))}
          />
        </Card>
      )}
      {(workload.state === "running" || workload.state === "suspended") && (
        <RulesCard units={units} rows={rows} workload={workload.workload} />
      )}
      {workload.started_at !== null && allocations.length > 0 && (
        <Card title="Over its life">
          <MetricHistory
            subject={{ workload: workload.workload }}
            range={{ startMs: workload.started_at, endMs: workload.ended_at }}
            unitCount={allocations.length}
            {...(units && rows.length > 0 ? { tops: findLimits(units, rows) } : {})}
          />
        </Card>
      )}
    </>
  );
}

function Owner({ workload }: { workload: WorkloadAnswer }) {
  const change = useChangeScreen();
  const { user, project } = workload;
  return (
    <>
      {workload.name && workload.workload}
      {project && ` · ${project}`}
      {user && (
        <>
          {" · by "}
          <button type="button" className={styles.owner} onClick={() => change(setFilter("user", [user]))}>
            {user}
          </button>
        </>
      )}
    </>
  );
}

function WhyItWaits({ workload }: { workload: WorkloadAnswer }) {
  const now = useNow();
  const waited = workload.submitted_at === null ? null : (now - workload.submitted_at) / 1000;
  return (
    <section className={styles.why} aria-label="Why it waits">
      <b>{workload.pending_reason_text ?? workload.pending_reason ?? "The scheduler gave no reason."}</b>
      <small>
        waiting for {formatDuration(waited)}
        {workload.pending_reason && ` · scheduler says ${workload.pending_reason}`}
        {workload.expected_start_at !== null && (
          <>
            {" · expected "}
            <RelativeTime at={workload.expected_start_at} />
          </>
        )}
      </small>
    </section>
  );
}

function facts({ workload, allocations }: WorkloadDetail): readonly Fact[] {
  const ended = workload.ended_at !== null;
  const limit = workload.time_limit_s === null ? "" : ` of ${formatDuration(workload.time_limit_s)}`;
  const sources = [...new Set(allocations.map(({ source }) => SOURCE_WORDS[source]))];
  const least = Math.min(1, ...allocations.map(({ confidence }) => confidence));
  return [
    { name: "GPUs", value: gpuWords(workload) },
    { name: "nodes", value: workload.nodes.length > 0 ? <NodeLinks nodes={workload.nodes} /> : null },
    { name: "partition", value: workload.partition },
    { name: "experiment", value: workload.experiment },
    {
      name: ended ? "ran for" : "running for",
      value:
        workload.run_s === null ? null : (
          <span data-tip={`started ${formatExact(workload.started_at)}`}>
            {formatDuration(workload.run_s)}
            {limit}
          </span>
        ),
    },
    {
      name: "waited",
      value: workload.state === "waiting" || workload.wait_s === null ? null : formatDuration(workload.wait_s),
    },
    { name: "submitted", value: workload.submitted_at === null ? null : <RelativeTime at={workload.submitted_at} /> },
    { name: "ended", value: ended ? <RelativeTime at={workload.ended_at} /> : null },
    { name: "exit", value: exitWords(workload) },
    { name: "GPU-hours", value: hoursWords(workload) },
    { name: "suspended", value: workload.suspended_s > 0 ? formatDuration(workload.suspended_s) : null },
    { name: "priority", value: workload.priority === null ? null : formatCount(workload.priority) },
    { name: "quality of service", value: workload.qos },
    { name: "restarts", value: workload.restarts > 0 ? formatCount(workload.restarts) : null },
    {
      name: "allocation source",
      value:
        sources.length > 0 ? `${sources.join("; ")}${least < 1 ? ` (${Math.round(least * 100)} % sure)` : ""}` : null,
    },
    ...Object.entries(workload.tags).map(([name, value]) => ({ name, value })),
  ];
}

function gpuWords({ gpus_requested, resource_type, nodes, nodes_requested }: WorkloadAnswer): string {
  const machine = resource_type?.replace(/-\d+$/, "");
  const count = nodes.length || nodes_requested;
  const where = count ? ` on ${formatPlural(count, "node")}` : "";
  return `${formatCount(gpus_requested)}${machine ? ` × ${machine}` : ""}${where}`;
}

/** `4.2, 1.1 of them before it started again`. */
function hoursWords({ gpu_hours, earlier_gpu_hours }: WorkloadAnswer): string | null {
  if (gpu_hours === null) return null;
  const before = earlier_gpu_hours > 0 ? `, ${formatHours(earlier_gpu_hours)} of them in earlier executions` : "";
  return `${formatHours(gpu_hours)}${before}`;
}

/** `code 3`, `signal 9; worst step: code 5`; null where all went well, or nobody knows. */
function exitWords(workload: WorkloadAnswer): string | null {
  const ownCode = codeWords(workload.exit_code, workload.exit_signal);
  const step = codeWords(workload.derived_exit_code, workload.derived_exit_signal);
  const ofStep = step === null || step === ownCode ? null : `worst step: ${step}`;
  return ownCode === null && ofStep === null ? null : [ownCode, ofStep].filter(Boolean).join("; ");
}

function codeWords(code: number | null, signal: number | null): string | null {
  if (signal) return `signal ${signal}`;
  return code ? `code ${code}` : null;
}

/** Executions that are over while the workload went on, the newest first. */
function Executions({ executions }: { executions: readonly ExecutionAnswer[] }) {
  return (
    <Card title="Earlier executions">
      <ul className={styles.executions}>
        {[...executions].reverse().map((execution) => (
          <li key={execution.started_at} data-tip={executionTip(execution)}>
            <RelativeTime at={execution.started_at} />
            <span>{(execution.scheduler_state ?? stateWords(execution.state)).toLowerCase()}</span>
            <span>{formatDuration(execution.run_s)}</span>
            <b>{formatGpuHours(execution.gpu_hours)}</b>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function executionTip({ started_at, ended_at, gpus, suspended_s, is_estimated }: ExecutionAnswer): string {
  const suspended = suspended_s > 0 ? `, suspended for ${formatDuration(suspended_s)}` : "";
  const estimated = is_estimated ? "; the accounting has not confirmed its end yet" : "";
  return `${formatExact(started_at)} to ${formatExact(ended_at)} on ${formatPlural(gpus, "GPU")}${suspended}${estimated}`;
}

function NodeLinks({ nodes }: { nodes: readonly string[] }) {
  return (
    <>
      {nodes.slice(0, MOST_NODES).map((node, index) => (
        <span key={node}>
          {index > 0 && ", "}
          <OpenLink kind="node" name={node} />
        </span>
      ))}
      {nodes.length > MOST_NODES && ` and ${nodes.length - MOST_NODES} more`}
    </>
  );
}
