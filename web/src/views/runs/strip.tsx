// The chosen runs in numbers, with the fastest and the one that took least energy for its work.

import type { RunRow, RunTree } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { FigureList, FigureTerm, Strip } from "../../widgets/strip.tsx";
import { findRows, type ShownPage, sayApart } from "./groups.ts";
import { sayNumber } from "./quantities.ts";
import { findBest, summarizeRuns, unitAfter } from "./run-facts.ts";

export function RunsStrip({ tree, page }: { tree: RunTree | undefined; page: ShownPage }) {
  if (tree === undefined || tree.rows.length === 0) return null;
  const rows = findRows(tree, page.runs);
  const { failed, joules, slowdown } = summarizeRuns(rows);
  return (
    <Strip>
      <FigureList>
        <FigureTerm name={`of ${formatPlural(tree.rows.length, "run")} compared`} value={rows.length} />
        {failed > 0 && <FigureTerm name="not completed" value={failed} />}
        {joules > 0 && <FigureTerm name="GPU energy in all" value={sayNumber(joules, "joules")} />}
        <Best rows={rows} quantity="throughput" name="fastest" isMost />
        <Best rows={rows} quantity="joules_per_work" name="least energy for its work" />
        {slowdown !== null && <FigureTerm name="mean slowdown of sharing" value={`${slowdown.toFixed(2)}×`} />}
      </FigureList>
    </Strip>
  );
}

interface BestProps {
  readonly rows: readonly RunRow[];
  readonly quantity: string;
  readonly name: string;
  readonly isMost?: boolean;
}

function Best({ rows, quantity: key, name, isMost = false }: BestProps) {
  const best = findBest(rows, key, isMost);
  if (best === null) return null;
  const { row, quantity } = best;
  return (
    <FigureTerm
      name={`${name}: ${sayApart(rows).get(row.run)}`}
      value={`${sayNumber(quantity.of(row), quantity.unit)}${key === "throughput" ? unitAfter(key, row) : ""}`}
    />
  );
}
