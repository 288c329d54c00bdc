// Tooltip of the span or band under the pointer.

import { nameAt, numberAt } from "../../../api/columns.ts";
import type { MareyRow } from "../../../api/marey.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import type { Size } from "../../../charts/canvas.tsx";
import { formatNs } from "./axis.ts";
import type { Drawn } from "./drawn.ts";
import { KIND_COLORS, KIND_TITLES } from "./kinds.ts";
import styles from "./marey-graph.module.css";
import type { Pointed } from "./use-gestures.ts";

interface TipProps {
  readonly drawn: Drawn;
  readonly pointed: Pointed;
  readonly originNs: number;
  readonly size: Size;
}

const WIDTH_PX = 300;
const HEIGHT_PX = 150;

export function Tip({ drawn, pointed, originNs, size }: TipProps) {
  const { span, band } = pointed;
  const { spans, rows } = drawn.marey;
  const kind = drawn.kinds[span] ?? "host";
  const row = rows[spans.row[span] ?? 0];
  const isLeft = pointed.x > size.width - WIDTH_PX;
  const isAbove = pointed.y > size.height - HEIGHT_PX;
  const style = {
    ...(isLeft ? { right: size.width - pointed.x + 14 } : { left: pointed.x + 14 }),
    ...(isAbove ? { bottom: size.height - pointed.y + 12 } : { top: pointed.y + 14 }),
  };
  return (
    <div className={styles.tip} style={style} role="status">
      <b>
        <i data-swatch={true} style={{ background: KIND_COLORS[kind] }} />
        {titleOf(drawn, span)}
      </b>
      <span>{[KIND_TITLES[kind], rankOf(row), row?.label, batchOf(drawn, span)].filter(Boolean).join(" · ")}</span>
      {listFacts(drawn, span, originNs).map(([name, value]) => (
        <span key={name}>
          {name} <em>{value}</em>
        </span>
      ))}
      {band !== null && <BandFacts drawn={drawn} band={band} />}
    </div>
  );
}

export function titleOf({ marey: { spans } }: Drawn, span: number): string {
  const name = nameAt(spans.name, span) ?? nameAt(spans.collective, span) ?? "unnamed";
  const count = spans.members[span] ?? 1;
  return count > 1 ? `${formatCount(count)} spans, longest ${name}` : name;
}

/** The rank of a lane; the labels of other rows contain it. */
function rankOf(row: MareyRow | undefined): string | null {
  return row === undefined || row.depth < 2 || row.rank === null ? null : `rank ${row.rank}`;
}

function batchOf({ marey: { spans } }: Drawn, span: number): string | null {
  const batch = numberAt(spans.microBatch, span);
  return batch === null ? null : `micro-batch ${batch}`;
}

function listFacts(
  { marey: { spans } }: Drawn,
  span: number,
  originNs: number,
): readonly (readonly [string, string])[] {
  const [start, end] = [spans.startNs[span] ?? 0, spans.endNs[span] ?? 0];
  const wait = numberAt(spans.waitNs, span);
  const slack = numberAt(spans.slackNs, span);
  const critical = numberAt(spans.critical, span);
  const isMerged = (spans.members[span] ?? 1) > 1;
  const facts: (readonly [string, string] | null)[] = [
    ["start", formatNs(start - originNs)],
    [isMerged ? "total duration" : "duration", formatNs(end - start)],
    isMerged
      ? [
          "each span",
          `${formatNs(spans.minNs[span])} – ${formatNs(spans.maxNs[span])}, median ${formatNs(spans.medianNs[span])}`,
        ]
      : null,
    wait !== null && wait > 0
      ? ["waiting", `${formatNs(wait)}, ${formatRatio(wait / Math.max(1, end - start))}`]
      : null,
    critical !== null && critical > 0 ? ["on the critical path", formatRatio(critical)] : null,
    slack !== null && slack > 0 ? ["slack", formatNs(slack)] : null,
  ];
  return facts.filter((fact) => fact !== null);
}

const BAND_TITLES: Readonly<Record<string, string>> = {
  same: "Same operator on the next row",
  collective: "Same collective on all its ranks",
  message: "Message to the next row",
};

function BandFacts({ drawn: { marey }, band }: { drawn: Drawn; band: number }) {
  const { bands } = marey;
  const count = bands.members[band] ?? 1;
  return (
    <span>
      {BAND_TITLES[nameAt(bands.kind, band) ?? ""] ?? "Connected"}
      {count > 1 && `, ${formatCount(count)} of them`}
      {(bands.maxSkewNs[band] ?? 0) > 0 && (
        <>
          {"; skew "}
          <em>{formatNs(bands.maxSkewNs[band])}</em>
        </>
      )}
    </span>
  );
}
