// What colors mean: for a quantity its distribution above the ramp, for names a list with counts.

import { formatCount, formatPlural, formatQuantity } from "../../../../base/format.ts";
import { rampColor } from "../../../../base/ramp.ts";
import { formatDuration } from "../../../../base/time.ts";
import { toCss } from "../tokens.ts";
import styles from "./color.module.css";
import type { CategoryLegend, Legend as LegendData, QuantityLegend } from "./coloring.ts";

const MOST_ENTRIES = 8;
const HEIGHT = 34;

export function Legend({ legend, title }: { legend: LegendData; title: string }) {
  return legend.kind === "quantity" ? (
    <Distribution legend={legend} title={title} />
  ) : (
    <Names legend={legend} title={title} />
  );
}

function Distribution({ legend, title }: { legend: QuantityLegend; title: string }) {
  const { bins, min, max, sampled } = legend;
  const say = (value: number) =>
    legend.unit === "seconds" ? formatDuration(value) : formatQuantity(value, legend.unit);
  if (sampled === 0) return <p className={styles.note}>No values to show.</p>;
  // Few units in one bin would vanish beside many in another: heights go by the root.
  const highest = Math.sqrt(Math.max(...bins));
  const label = `${title} of ${formatPlural(sampled, "unit")}, from ${say(min)} to ${say(max)}`;
  return (
    <figure className={styles.distribution}>
      <svg role="img" aria-label={label} viewBox={`0 0 ${bins.length} ${HEIGHT}`} preserveAspectRatio="none">
        {Array.from(bins, (count, bin) => {
          const height = count === 0 ? 0 : Math.max(1.5, (Math.sqrt(count) / highest) * HEIGHT);
          // biome-ignore lint/suspicious/noArrayIndexKey: a bin is its place
          return <rect key={bin} x={bin + 0.1} y={HEIGHT - height} width={0.8} height={height} />;
        })}
      </svg>
      <i style={{ background: `linear-gradient(to right, ${RAMP_STOPS})` }} />
      <figcaption>
        <span>{say(min)}</span>
        <span>{say(max)}</span>
      </figcaption>
    </figure>
  );
}

const RAMP_STOPS = Array.from({ length: 17 }, (_, step) => rampColor(step / 16)).join(", ");

function Names({ legend, title }: { legend: CategoryLegend; title: string }) {
  const more = legend.entries.length - MOST_ENTRIES;
  const shown = more > 1 ? legend.entries.slice(0, MOST_ENTRIES) : legend.entries;
  if (shown.length === 0) return <p className={styles.note}>No values to show.</p>;
  return (
    <ul className={styles.names} aria-label={title}>
      {shown.map(({ key, title: name, color, count }) => (
        <li key={key}>
          <i style={{ background: toCss(color) }} />
          <span title={name}>{name.replaceAll("_", " ")}</span>
          <small>{formatCount(count)}</small>
        </li>
      ))}
      {more > 1 && <li className={styles.note}>and {formatCount(more)} more</li>}
    </ul>
  );
}
