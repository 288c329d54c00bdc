// Communication between ranks, summed by pair and by process group. Pure.

import { nameAt, numberAt } from "../../../api/columns.ts";
import type { TraceCommunication } from "../../../api/traces-client.ts";
import { formatBytes, formatCount, formatQuantity } from "../../../base/format.ts";
import { formatNs } from "../graph/axis.ts";

export const LINK_MEASURES = ["time", "bytes", "bandwidth", "wait"] as const;
export type LinkMeasure = (typeof LINK_MEASURES)[number];

export const LINK_MEASURE_TITLES: Readonly<Record<LinkMeasure, string>> = {
  time: "Time",
  bytes: "Bytes",
  bandwidth: "Bandwidth",
  wait: "Wait",
};

export interface Link {
  readonly from: number;
  /** A rank, or the name of a process group. */
  readonly to: string;
  readonly isGroup: boolean;
  calls: number;
  bytes: number;
  timeNs: number;
  waitNs: number;
  kinds: Set<string>;
}

export function sumLinks(from: TraceCommunication): readonly Link[] {
  const links = new Map<string, Link>();
  for (let at = 0; at < from.count; at += 1) {
    const rank = numberAt(from.toRank, at);
    const to = rank === null ? (nameAt(from.processGroup, at) ?? "all") : String(rank);
    const key = `${from.fromRank[at]} ${to} ${rank === null}`;
    const link = links.get(key) ?? {
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
    links.set(key, link);
  }
  return [...links.values()];
}

/** Null where it is unknown. */
export function measureLink({ bytes, timeNs, waitNs }: Link, measure: LinkMeasure): number | null {
  if (measure === "time") return timeNs;
  if (measure === "wait") return waitNs;
  if (bytes <= 0) return null;
  return measure === "bytes" ? bytes : timeNs > 0 ? bytes / (timeNs / 1e9) : null;
}

export function formatMeasure(value: number, measure: LinkMeasure): string {
  if (measure === "time" || measure === "wait") return formatNs(value);
  return measure === "bytes" ? formatBytes(value) : formatQuantity(value, "bytes_per_second");
}

export function describeLink(link: Link): string {
  const bandwidth = measureLink(link, "bandwidth");
  return [
    `${link.from} → ${link.to}: ${[...link.kinds].join(", ")} × ${formatCount(link.calls)}`,
    formatNs(link.timeNs),
    `waits ${formatNs(link.waitNs)}`,
    link.bytes > 0 ? formatBytes(link.bytes) : null,
    bandwidth === null ? null : formatQuantity(bandwidth, "bytes_per_second"),
  ]
    .filter(Boolean)
    .join(" · ");
}
