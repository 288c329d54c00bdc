// Menu that selects the metrics with a chart, from all metrics of the selected runs.

import type { RunMetrics } from "../../api/generated.ts";
import { changeRuns } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Menu, MenuCheck } from "../../widgets/menu.tsx";
import styles from "./runs.module.css";

interface MetricMenuProps {
  readonly available: RunMetrics;
  readonly metrics: readonly string[];
}

export function MetricMenu({ available, metrics }: MetricMenuProps) {
  const change = useChangeScreen();
  const toggle = (metric: string) => {
    const next = metrics.includes(metric) ? metrics.filter((other) => other !== metric) : [...metrics, metric];
    change(changeRuns({ metrics: next }), "replace");
  };
  return (
    <Menu trigger={<Button>Metrics {metrics.length}</Button>}>
      {sortMetrics(available).map(({ metric, label }) => (
        <MenuCheck key={metric} isOn={metrics.includes(metric)} onToggle={() => toggle(metric)}>
          <span className={styles.entry}>{nameMetric(metric, label)}</span>
        </MenuCheck>
      ))}
    </Menu>
  );
}

const DEFAULT_METRICS = ["joules_per_work", "gpu_util_ratio", "power_watts", "memory_used_bytes"];
/** Metrics of the process and the host, which are not in the catalogue of GPU metrics. */
const PROCESS_METRIC = /^(process|host)_/;

const DERIVED_METRIC = /^(joules_per_work|work_per_second)/;

export function nameMetric(metric: string, label: string | null): string {
  if (label !== null || !PROCESS_METRIC.test(metric)) return label ?? metric;
  const words = metric
    .replace(/_bytes$/, "")
    .replaceAll("_", " ")
    .replace("cpu", "CPU");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Metrics of the script first, then derived ones, then GPUs, then processes and the host. */
function sortMetrics({ metrics }: RunMetrics): RunMetrics["metrics"] {
  const rank = ({ metric, label }: RunMetrics["metrics"][number]) => {
    if (DERIVED_METRIC.test(metric)) return 1;
    if (PROCESS_METRIC.test(metric)) return 3;
    return label === null ? 0 : 2;
  };
  return metrics.toSorted((a, b) => rank(a) - rank(b));
}

const MAX_DEFAULT = 6;

/** The default charts: metrics of the script, then of its hardware. */
export function chooseMetrics({ metrics }: RunMetrics): readonly string[] {
  const names = metrics.map(({ metric }) => metric);
  const scriptMetrics = metrics.filter(({ label, metric }) => label === null && !PROCESS_METRIC.test(metric));
  const defaults = DEFAULT_METRICS.filter((metric) => names.includes(metric));
  const first = [
    ...scriptMetrics.map(({ metric }) => metric).slice(0, MAX_DEFAULT - Math.min(3, defaults.length)),
    ...defaults,
  ];
  return (first.length > 0 ? first : names).slice(0, MAX_DEFAULT);
}
