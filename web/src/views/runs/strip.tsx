// Summary of the selected runs, with the fastest and the most energy-efficient one.

import type { RunRow, RunTree } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { FigureList, FigureTerm, Strip } from "../../widgets/strip.tsx";
import { findRows, labelRuns, type ShownPage } from "./groups.ts";
import { formatNumber } from "./quantities.ts";
import { findBestRun, summarizeRuns, unitAfter } from "./run-facts.ts";

export function RunsStrip({ tree, page }: { tree: RunTree | undefined; page: ShownPage }) {
  if (tree === undefined || tree.rows.length === 0) return null;
  const rows = findRows(tree, page.runs);
  const { failed, joules, slowdown } = summarizeRuns(rows);
  return (
    <Strip>
      <FigureList>
        <FigureTerm name={`of ${formatPlural(tree.rows.length, "run")} compared`} value={rows.length} />
        {failed > 0 && <FigureTerm name="not completed" value={failed} />}
        {joules > 0 && <FigureTerm name="total GPU energy" value={formatNumber(joules, "joules")} />}
        <Best rows={rows} quantity="throughput" name="fastest" isMaximum />
        <Best rows={rows} quantity="joules_per_work" name="least energy per work" />
        {slowdown !== null && <FigureTerm name="mean slowdown by sharing" value={`${slowdown.toFixed(2)}×`} />}
      </FigureList>
    </Strip>
  );
}

interface BestProps {
  readonly rows: readonly RunRow[];
  readonly quantity: string;
  readonly name: string;
  readonly isMaximum?: boolean;
}

function Best({ rows, quantity: key, name, isMaximum = false }: BestProps) {
  const best = findBestRun(rows, key, isMaximum);
  if (best === null) return null;
  const { row, quantity } = best;
  return (
    <FigureTerm
      name={`${name}: ${labelRuns(rows).get(row.run)}`}
      value={`${formatNumber(quantity.of(row), quantity.unit)}${key === "throughput" ? unitAfter(key, row) : ""}`}
    />
  );
}
