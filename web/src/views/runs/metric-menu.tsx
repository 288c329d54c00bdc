// Which metrics have a chart, of all that the chosen runs have.

import type { RunMetrics } from "../../api/generated.ts";
import { changeRuns } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Menu, MenuCheck } from "../../widgets/menu.tsx";
import styles from "./runs.module.css";

interface MetricMenuProps {
  readonly known: RunMetrics;
  readonly metrics: readonly string[];
}

export function MetricMenu({ known, metrics }: MetricMenuProps) {
  const change = useChangeScreen();
  const toggle = (metric: string) => {
    const next = metrics.includes(metric) ? metrics.filter((each) => each !== metric) : [...metrics, metric];
    change(changeRuns({ metrics: next }), "replace");
  };
  return (
    <Menu trigger={<Button>Metrics {metrics.length}</Button>}>
      {inOrder(known).map(({ metric, label }) => (
        <MenuCheck key={metric} isOn={metrics.includes(metric)} onToggle={() => toggle(metric)}>
          <span className={styles.entry}>{sayMetric(metric, label)}</span>
        </MenuCheck>
      ))}
    </Menu>
  );
}

const USUAL = ["joules_per_work", "gpu_util_ratio", "power_watts", "memory_used_bytes"];
/** What trackers measure of the process itself; the catalogue of GPU metrics does not know it. */
const OF_PROCESS = /^(process|host)_/;

const DERIVED = /^(joules_per_work|work_per_second)/;

export function sayMetric(metric: string, label: string | null): string {
  if (label !== null || !OF_PROCESS.test(metric)) return label ?? metric;
  const words = metric
    .replace(/_bytes$/, "")
    .replaceAll("_", " ")
    .replace("cpu", "CPU");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What the script says first, then what its work cost, then its GPUs, then its processes and the machine. */
function inOrder({ metrics }: RunMetrics): RunMetrics["metrics"] {
  const rank = ({ metric, label }: RunMetrics["metrics"][number]) => {
    if (DERIVED.test(metric)) return 1;
    if (OF_PROCESS.test(metric)) return 3;
    return label === null ? 0 : 2;
  };
  return metrics.toSorted((a, b) => rank(a) - rank(b));
}

const MOST_AT_FIRST = 6;

/** What a reader wants to see first: what the script reports, then what its hardware did. */
export function chooseMetrics({ metrics }: RunMetrics): readonly string[] {
  const names = metrics.map(({ metric }) => metric);
  const own = metrics.filter(({ label, metric }) => label === null && !OF_PROCESS.test(metric));
  const usual = USUAL.filter((metric) => names.includes(metric));
  const first = [...own.map(({ metric }) => metric).slice(0, MOST_AT_FIRST - Math.min(3, usual.length)), ...usual];
  return (first.length > 0 ? first : names).slice(0, MOST_AT_FIRST);
}
