// Which metrics have a chart, of all that the chosen runs have.

import type { RunMetrics } from "../../api/generated.ts";
import { changeRuns } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Menu, MenuCheck } from "../../widgets/menu.tsx";

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
      {known.metrics.map(({ metric, label }) => (
        <MenuCheck key={metric} isOn={metrics.includes(metric)} onToggle={() => toggle(metric)}>
          {sayMetric(metric, label)}
        </MenuCheck>
      ))}
    </Menu>
  );
}

const USUAL = ["gpu_util_ratio", "power_watts", "memory_used_bytes"];
/** What trackers measure of the process itself; the catalogue of GPU metrics does not know it. */
const OF_PROCESS = /^(process|host)_/;

export function sayMetric(metric: string, label: string | null): string {
  return label ?? (OF_PROCESS.test(metric) ? metric.replaceAll("_", " ") : metric);
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
