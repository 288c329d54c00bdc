// The page of one job: what it asked for, what it used of it, node by node, over its life, and what that says. Every
// number is in `clusterscape job`, too.

import type { JobCard } from "../../api/generated.ts";
import { formatGpuHours, formatHours, formatPlural, MISSING } from "../../base/format.ts";
import { formatExact } from "../../base/time.ts";
import { nativeId } from "../../base/workload-id.ts";
import { useJobCard } from "../../data/job.ts";
import { useCluster } from "../../data/queries.ts";
import { diagnose } from "../../state/diagnostics.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Facts } from "../../widgets/facts.tsx";
import { Frame, Message } from "../../widgets/frame.tsx";
import { FigureList, FigureTerm, Strip } from "../../widgets/strip.tsx";
import { Tag } from "../../widgets/tag.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { Advice, Similar } from "./advice.tsx";
import { Curves } from "./curves.tsx";
import styles from "./job.module.css";
import { Nodes } from "./nodes.tsx";
import { Shares } from "./shares.tsx";
import { describeState, formatClock, formatSize } from "./words.ts";

export default function JobPage() {
  const { job } = useScreen();
  const cluster = useCluster().value?.cluster;
  if (job === null) {
    return <Message>A link to a job is /job/CLUSTER/ID, with the id as Slurm prints it.</Message>;
  }
  if (cluster !== undefined && job.cluster !== cluster) {
    return (
      <Message role="alert">
        <strong>This is the server of {cluster}</strong>
        <span>
          Job {job.job} ran on {job.cluster}, which another server watches.
        </span>
      </Message>
    );
  }
  return <Card job={job.job} />;
}

function Card({ job }: { job: string }) {
  const card = useJobCard(job);
  return (
    <Frame source={card} what={`job ${job}`}>
      {(value) => (
        <ViewLayout strip={<Head card={value} />} controls={<Request card={value} />} hasNoControls details={null}>
          <div className={styles.card}>
            <Shares card={value} />
            <Notes card={value} />
            <Advice card={value} />
            <Curves card={value} />
            <Nodes card={value} />
            <Similar card={value} />
          </div>
        </ViewLayout>
      )}
    </Frame>
  );
}

const BAD_STATES = ["failed", "timeout", "out_of_memory", "node_failed"];

function Head({ card }: { card: JobCard }) {
  const isBad = BAD_STATES.includes(card.state);
  return (
    <Strip>
      <div className={styles.name}>
        <strong>{nativeId(card.workload)}</strong>
        <span>{card.name ?? MISSING}</span>
      </div>
      <Tag {...(isBad ? { tone: "warn" as const } : {})}>{describeState(card.state)}</Tag>
      <FigureList>
        <FigureTerm name={card.is_running ? "run time, in progress" : "run time"} value={formatClock(card.run_s)} />
        <FigureTerm name="nodes" value={card.node_count} />
        <FigureTerm name="CPU cores" value={card.cpus ?? MISSING} />
        {card.gpus > 0 && <FigureTerm name="GPUs" value={card.gpus} />}
        {card.gpus > 0 && (
          <FigureTerm
            name="idle GPU-hours"
            value={formatHours(card.wasted_gpu_hours)}
            isBad={(card.wasted_gpu_hours ?? 0) > 0}
            tip={`Of ${formatGpuHours(card.gpu_hours)}: those of GPUs that were idle on average`}
          />
        )}
      </FigureList>
    </Strip>
  );
}

function Request({ card }: { card: JobCard }) {
  const change = useChangeScreen();
  return (
    <div className={styles.request}>
      <Facts
        facts={[
          { name: "User", value: card.user ?? MISSING },
          { name: "Account", value: card.project ?? MISSING },
          { name: "Partition", value: card.partition ?? MISSING },
          { name: "QOS", value: card.qos },
          { name: "CPU memory", value: card.memory_requested_bytes && formatSize(card.memory_requested_bytes, true) },
          { name: "Time limit", value: card.time_limit_s === null ? "unlimited" : formatClock(card.time_limit_s) },
          { name: "Started", value: formatExact(card.started_at) },
          { name: "Ended", value: card.ended_at && formatExact(card.ended_at) },
          { name: "Exit code", value: card.is_running ? null : card.exit_code },
          { name: "Signal", value: card.exit_signal || null },
          { name: "Executions", value: card.executions > 1 ? formatPlural(card.executions, "execution") : null },
          { name: "Cluster", value: card.cluster },
        ]}
      />
      {card.gpus > 0 && <Button onClick={() => change(diagnose(card.workload))}>Diagnose its GPUs</Button>}
    </div>
  );
}

function Notes({ card }: { card: JobCard }) {
  if (card.notes.length === 0 && card.hint === null) return null;
  return (
    <section aria-label="Notes">
      <h2>Notes</h2>
      <ul className={styles.notes}>
        {card.notes.map(({ code, level, text }) => (
          <li key={code} data-level={level}>
            {text}
          </li>
        ))}
        {card.hint && <li>{card.hint}</li>}
      </ul>
    </section>
  );
}
