// What is highlighted in a graph: stretches of time on lanes, over the dimmed spans. Pure.

import { nameAt } from "../../../api/columns.ts";
import type { Verdict } from "../../../api/generated.ts";
import type { MareyRow } from "../../../api/marey.ts";
import type { TraceHighlights } from "../../../api/traces-client.ts";
import { KIND_COLORS, kindOf } from "./kinds.ts";

export interface HighlightMark {
  readonly rank: number;
  /** Null: all lanes of the rank. */
  readonly lane: string | null;
  readonly startNs: number;
  readonly endNs: number;
  /** A CSS color. */
  readonly color: string;
}

/** Where an operator of the flow runs. */
export function markOperators(times: TraceHighlights): readonly HighlightMark[] {
  return Array.from({ length: times.count }, (_, at) => ({
    rank: times.rank[at] ?? 0,
    lane: nameAt(times.lane, at),
    startNs: times.startNs[at] ?? 0,
    endNs: times.endNs[at] ?? 0,
    color: KIND_COLORS[kindOf(nameAt(times.class, at), nameAt(times.phase, at))],
  }));
}

/** Where a verdict's cause acts: in all its steps where the report has them, else its evidence. */
export function markVerdict(verdict: Verdict, color: string): readonly HighlightMark[] {
  const acts = listOccurrences(verdict);
  return acts.length > 0
    ? acts.map(({ rank, startNs, endNs }) => ({ rank, lane: null, startNs, endNs, color }))
    : verdict.spans.map(({ rank, start_ns, end_ns }) => ({
        rank,
        lane: null,
        startNs: start_ns,
        endNs: end_ns,
        color,
      }));
}

export interface Occurrence {
  readonly rank: number;
  readonly step: number;
  readonly seconds: number;
  readonly startNs: number;
  readonly endNs: number;
}

/** Where its cause acts; none if the report is older than that. */
export function listOccurrences({ occurrences }: Verdict): readonly Occurrence[] {
  const { ranks = [], steps = [], seconds = [], start_ns: starts = [], end_ns: ends = [] } = occurrences ?? {};
  return ranks.map((rank, at) => ({
    rank,
    step: steps[at] ?? 0,
    seconds: seconds[at] ?? 0,
    startNs: starts[at] ?? 0,
    endNs: ends[at] ?? 0,
  }));
}

/** The row of every mark; null: its row is not visible. An open row is a heading, so the marks are on the rows below it. */
export function findMarkRows(
  marks: readonly HighlightMark[],
  rows: readonly MareyRow[],
  ranksOf: (stage: number | null) => readonly number[],
): readonly (readonly number[])[] {
  const byRank = new Map<number, number[]>();
  rows.forEach((row, at) => {
    if (row.isOpen) return;
    const ranks = row.rank === null ? ranksOf(row.stage) : [row.rank];
    for (const rank of ranks) byRank.set(rank, [...(byRank.get(rank) ?? []), at]);
  });
  return marks.map(({ rank, lane }) =>
    (byRank.get(rank) ?? []).filter((at) => {
      const rowLane = rows[at]?.lane ?? null;
      return rowLane === null || lane === null || rowLane === lane;
    }),
  );
}
