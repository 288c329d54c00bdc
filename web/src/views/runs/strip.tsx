// The chosen runs in numbers, with the fastest and the one that took least energy for its work.

import type { ReactNode } from "react";
import type { RunRow, RunTree } from "../../api/generated.ts";
import { formatPlural, isKnown } from "../../base/format.ts";
import { type ShownPage, sayApart } from "./groups.ts";
import { listQuantities, sayNumber } from "./quantities.ts";
import styles from "./runs.module.css";

export function Strip({ tree, page }: { tree: RunTree | undefined; page: ShownPage }) {
  if (tree === undefined || tree.rows.length === 0) return <div className={styles.strip} />;
  const known = new Map(tree.rows.map((row) => [row.run, row]));
  const rows = page.runs.flatMap((run) => known.get(run) ?? []);
  const failed = rows.filter(({ state }) => state !== "completed" && state !== "running").length;
  const joules = rows.reduce((sum, { energy }) => sum + (energy?.joules ?? 0), 0);
  const slowdowns = rows.flatMap(({ slowdown }) => (slowdown ? [slowdown.ratio] : []));
  return (
    <div className={styles.strip}>
      <dl className={styles.figures}>
        <Figure name={`of ${formatPlural(tree.rows.length, "run")} compared`} value={rows.length} />
        {failed > 0 && <Figure name="not completed" value={failed} />}
        {joules > 0 && <Figure name="GPU energy in all" value={sayNumber(joules, "joules")} />}
        <Best rows={rows} quantity="throughput" name="fastest" isMost />
        <Best rows={rows} quantity="joules_per_work" name="least energy for its work" />
        {slowdowns.length > 0 && (
          <Figure
            name="mean slowdown of sharing"
            value={`${(slowdowns.reduce((sum, each) => sum + each, 0) / slowdowns.length).toFixed(2)}×`}
          />
        )}
      </dl>
    </div>
  );
}

interface BestProps {
  readonly rows: readonly RunRow[];
  readonly quantity: string;
  readonly name: string;
  readonly isMost?: boolean;
}

function Best({ rows, quantity: wanted, name, isMost = false }: BestProps) {
  const quantity = listQuantities(rows).find(({ key }) => key === wanted);
  const known = rows.filter((row) => isKnown(quantity?.of(row)));
  if (!quantity || known.length < 2) return null;
  const sign = isMost ? -1 : 1;
  const [best] = known.toSorted((a, b) => sign * ((quantity.of(a) ?? 0) - (quantity.of(b) ?? 0)));
  if (!best) return null;
  return (
    <Figure
      name={`${name}: ${sayApart(rows).get(best.run)}`}
      value={`${sayNumber(quantity.of(best), quantity.unit)}${wanted === "throughput" && best.work ? ` ${best.work.unit}/s` : ""}`}
    />
  );
}

function Figure({ name, value }: { name: string; value: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
