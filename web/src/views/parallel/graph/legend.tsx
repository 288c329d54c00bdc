// Legend of the visible colors and shapes of a graph.

import { useMemo } from "react";
import { formatPlural } from "../../../base/format.ts";
import { rampColor } from "../../../base/ramp.ts";
import type { SpanColor } from "../../../state/parallel.ts";
import { Legend } from "../../../widgets/legend.tsx";
import type { Drawn } from "./drawn.ts";
import { KIND_COLORS, KIND_TITLES, SPAN_KINDS, type SpanKind } from "./kinds.ts";
import styles from "./legend.module.css";

const RAMP_LABELS: Readonly<Record<Exclude<SpanColor, "class">, readonly [string, string]>> = {
  wait: ["working", "waiting"],
  critical: ["off the critical path", "on the critical path"],
  slack: ["much slack", "no slack"],
};

const HOW_TO_READ =
  "A band with a straight right edge and a slanted left edge waits for a straggler. Drag to zoom, scroll to zoom at the " +
  "pointer, hold Shift to pan, double-click or press 0 to return to the step.";

interface GraphLegendProps {
  readonly drawn: Drawn;
  readonly by: SpanColor;
  readonly howToRead?: string;
}

export function GraphLegend({ drawn, by, howToRead = HOW_TO_READ }: GraphLegendProps) {
  const kinds = useMemo(() => listKinds(drawn), [drawn]);
  return (
    <div className={styles.legend}>
      {by === "class" ? (
        <Legend aria-label="Colors" className={styles.colors}>
          {kinds.map((kind) => (
            <li key={kind}>
              <i
                data-swatch={true}
                style={{ background: KIND_COLORS[kind] }}
                data-thin={kind === "waiting" || undefined}
              />
              {KIND_TITLES[kind]}
            </li>
          ))}
          <li>
            <i data-swatch={true} data-merged={true} />
            merged
          </li>
        </Legend>
      ) : (
        <Ramp ends={RAMP_LABELS[by]} />
      )}
      {drawn.matchCount !== null && (
        <span className={styles.matches} role="status">
          {drawn.matchCount === 0
            ? "No matching spans in this window."
            : formatPlural(drawn.matchCount, "matching span")}
        </span>
      )}
      <span className={styles.how} data-tip={howToRead}>
        width is duration · slant is skew · empty is idle · drag to zoom
      </span>
    </div>
  );
}

function Ramp({ ends: [low, high] }: { ends: readonly [string, string] }) {
  const stops = Array.from({ length: 9 }, (_, at) => rampColor(at / 8)).join(", ");
  return (
    <span className={styles.ramp}>
      {low} <i style={{ background: `linear-gradient(90deg, ${stops})` }} /> {high}
    </span>
  );
}

export function listKinds({ kinds, marey }: Drawn): readonly SpanKind[] {
  const visibleKinds = new Set<SpanKind>(kinds);
  if (marey.spans.waitNs.some((wait) => wait > 0)) visibleKinds.add("waiting");
  return SPAN_KINDS.filter((kind) => visibleKinds.has(kind));
}
