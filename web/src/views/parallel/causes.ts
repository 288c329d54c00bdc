// Where causes act: seconds by cause, rank and step, from the report's verdicts and from how ranks spend their steps. Pure.

import type { TraceAttribution, TraceReportAnswer } from "../../api/generated.ts";
import type { TraceSteps } from "../../api/traces-client.ts";
import { listOccurrences } from "./graph/highlight.ts";
import { KIND_COLORS } from "./graph/kinds.ts";
import { causeColor, nameKind } from "./verdict-cards.tsx";

export interface Cause {
  readonly key: string;
  readonly title: string;
  /** A CSS color. */
  readonly color: string;
  /** Its place among the verdicts; null: a part of the step that no verdict is about. */
  readonly verdict: number | null;
  /** Seconds by rank and step, as `keyOfCell`. */
  readonly seconds: ReadonlyMap<string, number>;
}

export interface CauseTable {
  readonly ranks: readonly number[];
  readonly steps: readonly number[];
  readonly causes: readonly Cause[];
}

export function keyOfCell(rank: number, step: number): string {
  return `${rank} ${step}`;
}

/** Useful work is not a cause. */
const USEFUL = ["compute"];
const PART_COLORS: Readonly<Record<string, string>> = {
  waiting: KIND_COLORS.waiting,
  transferring: KIND_COLORS.communication,
  slower_compute: KIND_COLORS.compute,
  data_loading: KIND_COLORS.data,
  launching: KIND_COLORS.launch,
};

/** Verdicts first, each with its color, then the parts of the steps. */
export function listCauses(report: TraceReportAnswer, steps: TraceSteps): CauseTable {
  const distinct = (values: Float64Array) => [...new Set(values)].sort((a, b) => a - b);
  const parts = report.attribution ? listAttributed(report.attribution) : listParts(steps);
  return {
    ranks: distinct(steps.rank),
    steps: distinct(steps.step),
    causes: [...listVerdicts(report), ...parts.filter(({ seconds }) => seconds.size > 0)],
  };
}

function listVerdicts({ verdicts }: TraceReportAnswer): readonly Cause[] {
  return verdicts.flatMap((verdict, at) => {
    const occurrences = listOccurrences(verdict);
    if (occurrences.length === 0) return [];
    const seconds = new Map<string, number>();
    for (const { rank, step, seconds: length } of occurrences) {
      const key = keyOfCell(rank, step);
      seconds.set(key, (seconds.get(key) ?? 0) + length);
    }
    return [{ key: `verdict ${at}`, title: nameKind(verdict.kind), color: causeColor(at), verdict: at, seconds }];
  });
}

function listAttributed({ kinds, ranks, steps, seconds }: TraceAttribution): readonly Cause[] {
  return kinds.flatMap((kind, at) => {
    if (USEFUL.includes(kind)) return [];
    const cells = new Map<string, number>();
    ranks.forEach((rank, row) => {
      steps.forEach((step, column) => {
        const value = seconds[at]?.[row]?.[column] ?? null;
        if (value !== null && value > 0) cells.set(keyOfCell(rank, step), value);
      });
    });
    return [{ key: kind, title: kind.replaceAll("_", " "), color: colorOfPart(kind), verdict: null, seconds: cells }];
  });
}

function listParts(steps: TraceSteps): readonly Cause[] {
  const parts = [
    { kind: "waiting", title: "exposed waiting", values: steps.waitNs },
    { kind: "transferring", title: "exposed transfer", values: steps.transferNs },
    { kind: "idle", title: "idle", values: steps.idleNs },
  ];
  return parts.map(({ kind, title, values }) => {
    const seconds = new Map<string, number>();
    values.forEach((value, at) => {
      if (value > 0) seconds.set(keyOfCell(steps.rank[at] ?? 0, steps.step[at] ?? 0), value / 1e9);
    });
    return { key: kind, title, color: colorOfPart(kind), verdict: null, seconds };
  });
}

function colorOfPart(kind: string): string {
  return PART_COLORS[kind] ?? "var(--muted)";
}

/** The cause that costs most in each cell, of the given ones. */
export function findWorst(causes: readonly Cause[], rank: number, step: number): Cause | null {
  const key = keyOfCell(rank, step);
  let worst: Cause | null = null;
  for (const cause of causes) {
    if ((cause.seconds.get(key) ?? 0) > (worst?.seconds.get(key) ?? 0)) worst = cause;
  }
  return worst;
}
