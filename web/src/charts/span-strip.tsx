// Time spans as marks on a line. Spans that touch or overlap are joined.

import styles from "./span-strip.module.css";

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

interface SpanStripProps {
  readonly label: string;
  readonly spans: readonly Span[];
  readonly startMs: number;
  readonly endMs: number;
  readonly color: string;
}

export function SpanStrip({ label, spans, startMs, endMs, color }: SpanStripProps) {
  return (
    <span className={styles.strip} role="img" aria-label={label} data-tip={label}>
      {joinSpans(spans).map((span) => {
        const { left, width } = placeSpan(span, startMs, endMs);
        return <i key={span.fromMs} style={{ left: `${left * 100}%`, width: `${width * 100}%`, background: color }} />;
      })}
    </span>
  );
}

/** Overlapping ones as one, in order of time. */
export function joinSpans(spans: readonly Span[]): readonly Span[] {
  const joined: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.fromMs - b.fromMs)) {
    const last = joined.at(-1);
    if (last && span.fromMs <= last.toMs) {
      joined[joined.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, span.toMs) };
    } else joined.push(span);
  }
  return joined;
}

/** Where a span stands between start and end, 0–1. */
export function placeSpan({ fromMs, toMs }: Span, startMs: number, endMs: number): { left: number; width: number } {
  const total = Math.max(1, endMs - startMs);
  const left = Math.min(1, Math.max(0, (fromMs - startMs) / total));
  const right = Math.min(1, Math.max(0, (toMs - startMs) / total));
  return { left, width: right - left };
}
