// One quantity a card: a bar for each run or group, with the 95 % interval of its mean where runs were repeated.

import type { RunRow } from "../../api/generated.ts";
import styles from "./charts.module.css";
import type { RunGroup } from "./groups.ts";
import { type RunQuantity, type Spread, sayNumber, spreadOf } from "./quantities.ts";

interface BarsDrawingProps {
  readonly groups: readonly RunGroup[];
  readonly quantities: readonly RunQuantity[];
}

export function BarsDrawing({ groups, quantities }: BarsDrawingProps) {
  return (
    <div className={styles.charts}>
      {quantities.map((quantity) => (
        <QuantityCard key={quantity.key} quantity={quantity} groups={groups} />
      ))}
    </div>
  );
}

function QuantityCard({ quantity, groups }: { quantity: RunQuantity; groups: readonly RunGroup[] }) {
  const spreads = groups.map(({ rows }) => spreadOf(rows, quantity));
  const most = Math.max(...spreads.map((spread) => (spread ? Math.max(spread.mean, spread.high ?? 0) : 0)));
  return (
    <section className={styles.card} aria-label={quantity.title}>
      <header>
        <h3 data-tip={quantity.tip} data-drawn-label={true}>
          {quantity.title}
        </h3>
        <small>{noteOf(quantity, groups)}</small>
      </header>
      <dl className={styles.bars}>
        {groups.map(({ key, label, color }, at) => {
          const spread = spreads[at] ?? null;
          return (
            <div key={key}>
              <dt data-tip={label} data-drawn-label={true}>
                {label}
              </dt>
              <dd>
                <Bar spread={spread} most={most} color={color} />
              </dd>
              <dd className={styles.number} data-drawn-label={true}>
                {saySpread(spread, quantity)}
              </dd>
            </div>
          );
        })}
      </dl>
    </section>
  );
}

function Bar({ spread, most, color }: { spread: Spread | null; most: number; color: string }) {
  const percent = (value: number) => `${Math.min(100, Math.max(0, (value / (most || 1)) * 100))}%`;
  return (
    <div className={styles.bar}>
      {spread && <i data-drawn-bar={true} style={{ width: percent(spread.mean), background: color }} />}
      {spread?.low != null && spread.high != null && (
        <b
          data-drawn-bar={true}
          style={{ left: percent(spread.low), width: `calc(${percent(spread.high)} - ${percent(spread.low)})` }}
        />
      )}
    </div>
  );
}

function saySpread(spread: Spread | null, { unit }: RunQuantity) {
  if (spread === null) return sayNumber(null, unit);
  const half = spread.high === null ? null : spread.high - spread.mean;
  return (
    <>
      {sayNumber(spread.mean, unit)}
      {half !== null && <small> ± {sayNumber(Number(half.toPrecision(2)), unit)}</small>}
    </>
  );
}

/** How energy is known differs between runs alone and runs that share a GPU: it is said where it is not measured. */
function noteOf({ key }: RunQuantity, groups: readonly RunGroup[]): string | null {
  if (key !== "energy" && key !== "joules_per_work") return null;
  const rows: readonly RunRow[] = groups.flatMap((group) => group.rows);
  const methods = new Set(rows.flatMap(({ energy }) => (energy ? [energy.method] : [])));
  return methods.has("estimated") ? "shared GPUs: estimated" : null;
}
