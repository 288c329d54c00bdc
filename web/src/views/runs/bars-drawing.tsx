// A card per quantity: a bar for each run or group, with the 95 % interval of the mean for repeated runs.

import type { RunRow } from "../../api/generated.ts";
import styles from "./charts.module.css";
import type { RunGroup } from "./groups.ts";
import { UnfinishedMark } from "./legend.tsx";
import { computeSpread, formatNumber, type RunQuantity, type Spread } from "./quantities.ts";

interface BarsDrawingProps {
  readonly groups: readonly RunGroup[];
  readonly quantities: readonly RunQuantity[];
}

export function BarsDrawing({ groups, quantities }: BarsDrawingProps) {
  return (
    <div className={styles.charts} data-figure={true}>
      {quantities.map((quantity) => (
        <QuantityCard key={quantity.key} quantity={quantity} groups={groups} />
      ))}
    </div>
  );
}

function QuantityCard({ quantity, groups }: { quantity: RunQuantity; groups: readonly RunGroup[] }) {
  const spreads = groups.map(({ rows }) => computeSpread(rows, quantity));
  const maximum = Math.max(...spreads.map((spread) => (spread ? Math.max(spread.mean, spread.high ?? 0) : 0)));
  return (
    <section className={styles.card} aria-label={quantity.title}>
      <header>
        <h3 data-tip={quantity.tip} data-drawn-label={true}>
          {quantity.title}
        </h3>
        <small data-drawn-label={true}>{describeEnergy(quantity, groups)}</small>
      </header>
      <dl className={styles.bars}>
        {groups.map(({ key, label, color, unfinished }, at) => {
          const spread = spreads[at] ?? null;
          return (
            <div key={key}>
              <dt data-tip={unfinished === null ? label : `${label}: ${unfinished}`} data-drawn-label={true}>
                {label} {unfinished !== null && <UnfinishedMark what={unfinished} />}
              </dt>
              <dd>
                <Bar spread={spread} maximum={maximum} color={color} isUnfinished={unfinished !== null} />
              </dd>
              <dd className={styles.number} data-drawn-label={true}>
                {formatSpread(spread, quantity)}
              </dd>
            </div>
          );
        })}
      </dl>
    </section>
  );
}

interface BarProps {
  readonly spread: Spread | null;
  readonly maximum: number;
  readonly color: string;
  readonly isUnfinished: boolean;
}

function Bar({ spread, maximum, color, isUnfinished }: BarProps) {
  const percent = (value: number) => `${Math.min(100, Math.max(0, (value / (maximum || 1)) * 100))}%`;
  return (
    <div className={styles.bar}>
      {spread && (
        <i
          data-drawn-bar={true}
          data-unfinished={isUnfinished || undefined}
          style={{ width: percent(spread.mean), background: color }}
        />
      )}
      {spread?.low != null && spread.high != null && (
        <b
          data-drawn-bar={true}
          style={{ left: percent(spread.low), width: `calc(${percent(spread.high)} - ${percent(spread.low)})` }}
        />
      )}
    </div>
  );
}

function formatSpread(spread: Spread | null, { unit }: RunQuantity) {
  if (spread === null) return formatNumber(null, unit);
  const half = spread.high === null ? null : spread.high - spread.mean;
  return (
    <>
      {formatNumber(spread.mean, unit)}
      {half !== null && <small> ± {formatNumber(Number(half.toPrecision(2)), unit)}</small>}
    </>
  );
}

/** A note where energy is estimated, not measured: on shared GPUs. */
function describeEnergy({ key }: RunQuantity, groups: readonly RunGroup[]): string | null {
  if (key !== "energy" && key !== "joules_per_work") return null;
  const rows: readonly RunRow[] = groups.flatMap((group) => group.rows);
  const methods = new Set(rows.flatMap(({ energy }) => (energy ? [energy.method] : [])));
  return methods.has("estimated") ? "shared GPUs: estimated" : null;
}
