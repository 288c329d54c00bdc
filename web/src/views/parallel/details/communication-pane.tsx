// Who sends to whom: time, bytes or bandwidth of every pair of ranks; and of whole groups, rank by rank.

import { useMemo, useState } from "react";
import { nameAt, numberAt } from "../../../api/columns.ts";
import type { TraceCommunication } from "../../../api/traces-client.ts";
import { formatBytes, formatCount, formatQuantity } from "../../../base/format.ts";
import { HeatMatrix, type MatrixCell } from "../../../charts/heat-matrix.tsx";
import { useCommunication } from "../../../data/traces.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import { sayNs } from "../graph/axis.ts";
import styles from "./details.module.css";

const MEASURES = ["time", "bytes", "bandwidth", "wait"] as const;
type Measure = (typeof MEASURES)[number];

interface Link {
  readonly from: number;
  /** A rank, or the name of a group. */
  readonly to: string;
  readonly isGroup: boolean;
  calls: number;
  bytes: number;
  timeNs: number;
  waitNs: number;
  kinds: Set<string>;
}

export function CommunicationPane({ trace }: { trace: string }) {
  const source = useCommunication(trace);
  const [measure, setMeasure] = useState<Measure>("time");
  return (
    <Frame
      source={source}
      what="communication"
      isEmpty={({ count }) => count === 0}
      empty="Nothing is communicated in this trace."
    >
      {(value) => (
        <div className={styles.scroll}>
          <Segmented<Measure>
            label="Measure"
            name="matrix-measure"
            options={MEASURES.map((each) => ({ value: each, title: each }))}
            value={measure}
            onChange={setMeasure}
          />
          <Matrices communication={value} measure={measure} />
        </div>
      )}
    </Frame>
  );
}

function Matrices({ communication, measure }: { communication: TraceCommunication; measure: Measure }) {
  const links = useMemo(() => sumLinks(communication), [communication]);
  const pairs = links.filter(({ isGroup }) => !isGroup);
  const groups = links.filter(({ isGroup }) => isGroup);
  return (
    <>
      {pairs.length > 0 && <Matrix title="Rank to rank" links={pairs} measure={measure} />}
      {groups.length > 0 && <Matrix title="Rank in group" links={groups} measure={measure} />}
      <p>
        Of the whole trace. Time is transferring, without waiting for others; bandwidth is bytes by that time. Dark is
        little, light is much.
      </p>
    </>
  );
}

function Matrix({ title, links, measure }: { title: string; links: readonly Link[]; measure: Measure }) {
  const rows = [...new Set(links.map(({ from }) => from))].sort((a, b) => a - b);
  const columns = [...new Set(links.map(({ to }) => to))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const cells: readonly MatrixCell[] = links.flatMap((link) => {
    const value = measureOf(link, measure);
    if (value === null) return [];
    return {
      row: rows.indexOf(link.from),
      column: columns.indexOf(link.to),
      value,
      text: sayShort(value, measure),
      tip: describeLink(link),
    };
  });
  return (
    <section>
      <h2>{title}</h2>
      <HeatMatrix
        label={`${title}, ${measure}`}
        rowTitle="from"
        columnTitle="to"
        rows={rows.map(String)}
        columns={columns}
        cells={cells}
      />
    </section>
  );
}

function sumLinks(from: TraceCommunication): readonly Link[] {
  const found = new Map<string, Link>();
  for (let at = 0; at < from.count; at += 1) {
    const rank = numberAt(from.toRank, at);
    const to = rank === null ? (nameAt(from.processGroup, at) ?? "all") : String(rank);
    const key = `${from.fromRank[at]} ${to} ${rank === null}`;
    const link = found.get(key) ?? {
      from: from.fromRank[at] ?? 0,
      to,
      isGroup: rank === null,
      calls: 0,
      bytes: 0,
      timeNs: 0,
      waitNs: 0,
      kinds: new Set<string>(),
    };
    link.calls += numberAt(from.calls, at) ?? 0;
    link.bytes += numberAt(from.bytes, at) ?? 0;
    link.timeNs += numberAt(from.timeNs, at) ?? 0;
    link.waitNs += numberAt(from.waitNs, at) ?? 0;
    link.kinds.add(nameAt(from.kind, at) ?? "unnamed");
    found.set(key, link);
  }
  return [...found.values()];
}

/** Null where it is not known. */
function measureOf({ bytes, timeNs, waitNs }: Link, measure: Measure): number | null {
  if (measure === "time") return timeNs;
  if (measure === "wait") return waitNs;
  if (bytes <= 0) return null;
  return measure === "bytes" ? bytes : timeNs > 0 ? bytes / (timeNs / 1e9) : null;
}

function sayShort(value: number, measure: Measure): string {
  if (measure === "time" || measure === "wait") return sayNs(value);
  return measure === "bytes" ? formatBytes(value) : formatQuantity(value, "bytes_per_second");
}

function describeLink(link: Link): string {
  const bandwidth = measureOf(link, "bandwidth");
  return [
    `${link.from} → ${link.to}: ${[...link.kinds].join(", ")} × ${formatCount(link.calls)}`,
    sayNs(link.timeNs),
    `waits ${sayNs(link.waitNs)}`,
    link.bytes > 0 ? formatBytes(link.bytes) : null,
    bandwidth === null ? null : formatQuantity(bandwidth, "bytes_per_second"),
  ]
    .filter(Boolean)
    .join(" · ");
}
