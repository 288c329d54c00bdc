// Controls left of the queue: partition, forecast before submitting, and what-if.

import type { QueueAnswer } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { changeScheduling, type SchedulingPage } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import styles from "./controls.module.css";
import { ForecastForm } from "./forecast-form.tsx";
import { WhatIfForm } from "./what-if-form.tsx";

interface ControlsProps {
  readonly queue: QueueAnswer | undefined;
  readonly page: SchedulingPage;
}

export function Controls({ queue, page }: ControlsProps) {
  const change = useChangeScreen();
  const partitions = queue?.partitions ?? [];
  const isWaiting = (workload: string) => queue?.workloads.some((row) => row.workload === workload) ?? false;
  const rows = [{ name: "", waiting: queue?.workloads.length ?? null, gpus_free: null }, ...partitions];
  return (
    <div>
      <section>
        <h2>Partition</h2>
        <ul className={styles.queues}>
          {rows.map(({ name, waiting, gpus_free }) => (
            <li key={name}>
              <button
                type="button"
                data-row={true}
                aria-pressed={page.queue === name}
                data-tip={gpus_free === null ? undefined : `${formatCount(gpus_free)} GPUs free`}
                onClick={() => change(changeScheduling({ queue: name }))}
              >
                <span>{name || "All partitions"}</span>
                <small>{waiting !== null && formatCount(waiting)}</small>
              </button>
            </li>
          ))}
        </ul>
      </section>
      <ForecastForm partitions={partitions} page={page} />
      <WhatIfForm partitions={partitions} page={page} placement={queue?.placement ?? null} isWaiting={isWaiting} />
    </div>
  );
}
