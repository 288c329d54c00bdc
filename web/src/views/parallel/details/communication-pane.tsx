// Communication matrices: time, bytes, bandwidth or wait by pair of ranks, and by rank and process group.

import { useMemo, useState } from "react";
import type { TraceCommunication } from "../../../api/traces-client.ts";
import { HeatMatrix, type MatrixCell } from "../../../charts/heat-matrix.tsx";
import { useCommunication } from "../../../data/traces.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import styles from "./details.module.css";
import {
  describeLink,
  formatMeasure,
  LINK_MEASURE_TITLES,
  LINK_MEASURES,
  type Link,
  type LinkMeasure,
  measureLink,
  sumLinks,
} from "./links.ts";

export function CommunicationPane({ trace }: { trace: string }) {
  const source = useCommunication(trace);
  const [measure, setMeasure] = useState<LinkMeasure>("time");
  return (
    <Frame
      source={source}
      what="communication"
      isEmpty={({ count }) => count === 0}
      empty="No communication in this trace."
    >
      {(value) => (
        <div className={styles.scroll}>
          <Segmented<LinkMeasure>
            label="Measure"
            name="matrix-measure"
            options={LINK_MEASURES.map((value) => ({ value, title: LINK_MEASURE_TITLES[value] }))}
            value={measure}
            onChange={setMeasure}
          />
          <Matrices communication={value} measure={measure} />
        </div>
      )}
    </Frame>
  );
}

function Matrices({ communication, measure }: { communication: TraceCommunication; measure: LinkMeasure }) {
  const links = useMemo(() => sumLinks(communication), [communication]);
  const pairs = links.filter(({ isGroup }) => !isGroup);
  const groups = links.filter(({ isGroup }) => isGroup);
  return (
    <>
      {pairs.length > 0 && <Matrix title="Rank to rank" links={pairs} measure={measure} />}
      {groups.length > 0 && <Matrix title="Rank in group" links={groups} measure={measure} />}
      <p>
        Whole trace. Time is transfer time without waiting; bandwidth is bytes per transfer time. Darker is less,
        lighter is more.
      </p>
    </>
  );
}

function Matrix({ title, links, measure }: { title: string; links: readonly Link[]; measure: LinkMeasure }) {
  const rows = [...new Set(links.map(({ from }) => from))].sort((a, b) => a - b);
  const columns = [...new Set(links.map(({ to }) => to))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const cells: readonly MatrixCell[] = links.flatMap((link) => {
    const value = measureLink(link, measure);
    if (value === null) return [];
    return {
      row: rows.indexOf(link.from),
      column: columns.indexOf(link.to),
      value,
      text: formatMeasure(value, measure),
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
