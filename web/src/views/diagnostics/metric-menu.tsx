// Menu that selects the metrics of the timeline.

import * as Popover from "@radix-ui/react-popover";
import type { DiagnosedMetric } from "../../api/generated.ts";
import { Button } from "../../widgets/button.tsx";
import { PopupContent } from "../../widgets/popup.tsx";
import styles from "./metric-menu.module.css";
import { findMetric } from "./words.ts";

const MAX_METRICS = 8;

interface MetricMenuProps {
  readonly metrics: readonly DiagnosedMetric[];
  readonly chosen: readonly string[];
  onChange(names: readonly string[]): void;
}

export function MetricMenu({ metrics, chosen, onChange }: MetricMenuProps) {
  const titles = chosen.map((name) => findMetric(metrics, name)?.label ?? name);
  const text = titles.length > 3 ? `${titles.slice(0, 2).join(", ")} + ${titles.length - 2}` : titles.join(", ");
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <Button className={styles.trigger} aria-label={`Metrics of the timeline: ${titles.join(", ")}`}>
          {text} ▾
        </Button>
      </Popover.Trigger>
      <PopupContent className={styles.menu} align="end" aria-label="Metrics">
        {metrics.map(({ name, label, has_samples }) => {
          const isOn = chosen.includes(name);
          const isLast = isOn && chosen.length === 1;
          return (
            <label key={name} data-off={!has_samples || undefined}>
              <input
                type="checkbox"
                checked={isOn}
                disabled={!has_samples || isLast || (!isOn && chosen.length >= MAX_METRICS)}
                onChange={() => onChange(isOn ? chosen.filter((other) => other !== name) : [...chosen, name])}
              />
              {label}
              {!has_samples && <small>no samples</small>}
            </label>
          );
        })}
      </PopupContent>
    </Popover.Root>
  );
}
