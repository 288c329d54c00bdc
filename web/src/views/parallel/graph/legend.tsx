// What the colors and shapes of a graph mean: those that are in sight.

import { useMemo } from "react";
import { formatPlural } from "../../../base/format.ts";
import { rampColor } from "../../../base/ramp.ts";
import type { SpanColor } from "../../../state/parallel.ts";
import { Legend } from "../../../widgets/legend.tsx";
import type { Drawn } from "./drawn.ts";
import { KIND_COLORS, KIND_TITLES, SPAN_KINDS, type SpanKind } from "./kinds.ts";
import styles from "./legend.module.css";

const RAMP_WORDS: Readonly<Record<Exclude<SpanColor, "class">, readonly [string, string]>> = {
  wait: ["works", "only waits"],
  critical: ["off the critical path", "on it"],
  slack: ["much slack", "none"],
};

const HOW_TO_READ =
  "A straight right edge with a slanted left one waits for a straggler. Drag zooms, the wheel zooms about the pointer, " +
  "Shift with either moves, double-click or 0 goes back to the step.";

export function GraphLegend({ drawn, by }: { drawn: Drawn; by: SpanColor }) {
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
        <Ramp ends={RAMP_WORDS[by]} />
      )}
      {drawn.found !== null && (
        <span className={styles.found} role="status">
          {drawn.found === 0 ? "Nothing of that name in this window." : `${formatPlural(drawn.found, "span")} found`}
        </span>
      )}
      <span className={styles.how} data-tip={HOW_TO_READ}>
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
  const found = new Set<SpanKind>(kinds);
  if (marey.spans.waitNs.some((wait) => wait > 0)) found.add("waiting");
  return SPAN_KINDS.filter((kind) => found.has(kind));
}
