// The summary strip: GPUs by state, utilization, waste, queue, largest startable job, stranded GPUs. A click on a
// number shows its units.

import type { ClusterSummary } from "../../../api/generated.ts";
import { formatCount, formatHours, formatPlural, formatRatio, formatWatts } from "../../../base/format.ts";
import { rampColor } from "../../../base/ramp.ts";
import { useWaste } from "../../../data/queries.ts";
import { ReservationFigure } from "../../../parts/scheduling/reservation-figure.tsx";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { StackedBar } from "../../../widgets/stacked-bar.tsx";
import { Figure, Strip } from "../../../widgets/strip.tsx";
import { type Shown, showUnits } from "./choices.ts";
import { StartableFigure } from "./startable-figure.tsx";
import styles from "./summary-strip.module.css";

export function SummaryStrip({ cluster }: { cluster: ClusterSummary }) {
  const change = useChangeScreen();
  const { units } = cluster;
  const show = (shown: Shown) => () => change(showUnits(shown));
  return (
    <Strip>
      <Figure
        value={formatCount(units.total)}
        label={`GPUs on ${formatPlural(cluster.nodes, "node")}`}
        tip="Show all GPUs"
        onClick={show({ kind: "all" })}
      />
      <div className={styles.share}>
        <StackedBar share={units} />
        <span className={styles.states}>
          <State count={units.allocated} title="allocated" onClick={show({ kind: "state", states: ["allocated"] })} />
          <State count={units.free} title="free" onClick={show({ kind: "state", states: ["free"] })} />
          {units.unavailable > 0 && (
            <State
              count={units.unavailable}
              title="out of service"
              tip="On nodes that are down, drained or draining, and not allocated"
              onClick={show({ kind: "state", states: ["unavailable"] })}
            />
          )}
          {units.faulty > 0 && (
            <State
              count={units.faulty}
              title="faulty"
              tip="GPUs with a hardware error, or missing, allocated or not"
              onClick={show({ kind: "health", health: ["faulty"] })}
            />
          )}
          {units.silent > 0 && (
            <State
              count={units.silent}
              title="silent"
              tip="GPUs whose exporter does not respond, allocated or not"
              onClick={show({ kind: "health", health: ["silent"] })}
            />
          )}
        </span>
      </div>
      <Figure
        value={
          <>
            {cluster.gpu_util_ratio !== null && (
              <i data-swatch={true} style={{ background: rampColor(cluster.gpu_util_ratio) }} />
            )}{" "}
            {formatRatio(cluster.gpu_util_ratio)}
          </>
        }
        label="utilization of allocated"
        tip={`Mean over allocated GPUs; all GPUs together draw ${formatWatts(cluster.power_watts)}`}
        onClick={show({ kind: "use" })}
      />
      <WasteFigure onClick={show({ kind: "waste" })} />
      <Figure
        value={
          <>
            {formatCount(cluster.waiting)}
            {cluster.waiting > 0 && <small> · {formatPlural(cluster.waiting_gpus, "GPU")}</small>}
          </>
        }
        label="waiting"
        tip={`${formatPlural(cluster.waiting, "workload")} waiting for ${formatPlural(cluster.waiting_gpus, "GPU")}; ${formatCount(cluster.running)} running`}
        onClick={show({ kind: "queue" })}
      />
      <StartableFigure
        partitions={cluster.partitions}
        onShow={(partition) => change(showUnits({ kind: "free", partition }))}
      />
      <Figure
        value={formatCount(cluster.stranded)}
        label="stranded"
        tip="Free, but on nodes with too few free GPUs for any waiting workload"
        isBad={cluster.stranded > 0}
        onClick={show({ kind: "stranded" })}
      />
      <ReservationFigure reservations={cluster.reservations} nowMs={cluster.at} />
    </Strip>
  );
}

function WasteFigure({ onClick }: { onClick: () => void }) {
  const { value } = useWaste();
  const held = value?.held_gpu_hours ?? 0;
  const wasted = value?.wasted_gpu_hours ?? null;
  const share = wasted === null || held === 0 ? "" : ` (${formatRatio(wasted / held)})`;
  return (
    <Figure
      value={formatHours(wasted)}
      label="GPU-hours wasted, 24 h"
      tip={`Of ${formatHours(held)} GPU-hours held in the last 24 hours, ${formatHours(wasted)}${share} belonged to workloads with less than 5\u00a0% GPU utilization`}
      onClick={onClick}
    />
  );
}

function State({ count, title, tip, onClick }: { count: number; title: string; tip?: string; onClick: () => void }) {
  return (
    <button type="button" data-tip={tip ?? `Show only ${title} GPUs`} onClick={onClick}>
      {formatCount(count)} {title}
    </button>
  );
}

export function SummaryPlaceholder() {
  return (
    <Strip role="status" aria-label="Loading the summary">
      {[64, 220, 96, 72, 56, 88, 120].map((width) => (
        <span key={width} className={styles.placeholder} style={{ width }} />
      ))}
    </Strip>
  );
}
