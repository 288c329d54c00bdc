// The overview: the cluster in numbers, its partitions, and everything in it as a table to search, filter and open.

import { useMemo } from "react";
import { useCluster } from "../../data/queries.ts";
import { toggleFilter } from "../../state/changes.ts";
import type { TableName } from "../../state/screen.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Frame } from "../../widgets/frame.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { DetailsPanel } from "./details/details-panel.tsx";
import { Facets } from "./facets.tsx";
import styles from "./overview.module.css";
import { PartitionList } from "./partition-list.tsx";
import { SummaryPlaceholder, SummaryStrip } from "./summary-strip.tsx";
import { TableArea, Toolbar, useNarrowing } from "./table-area.tsx";
import { narrowRows } from "./tables/table-spec.ts";
import { useTable } from "./tables/use-table.ts";

export default function Overview() {
  const screen = useScreen();
  const change = useChangeScreen();
  const cluster = useCluster();
  const table = useTable(screen);
  const narrowing = useNarrowing(screen);
  const spec = table.value?.spec;
  const shown = useMemo(() => spec && narrowRows(spec, narrowing), [spec, narrowing]);

  const summary = cluster.value;
  const counts: Record<TableName, number | undefined> = {
    workloads: summary && summary.running + summary.waiting,
    units: summary && summary.units.total + summary.waiting_gpus,
    nodes: summary?.nodes,
  };
  const strip = (
    <Frame source={cluster} what="the summary" placeholder={<SummaryPlaceholder />}>
      {(value) => <SummaryStrip cluster={value} />}
    </Frame>
  );
  const facets = shown && (
    <Facets
      table={screen.table}
      counts={shown.facets}
      filters={screen.filters}
      onToggle={(name, value) => change(toggleFilter(name, value))}
    />
  );
  const controls = (
    <div className={styles.controls}>
      <PartitionList
        partitions={summary?.partitions ?? []}
        chosen={screen.filters.partition}
        onToggle={(partition) => change(toggleFilter("partition", partition))}
      />
      <div className={styles.facets}>{facets}</div>
    </div>
  );
  return (
    <ViewLayout
      strip={strip}
      controls={controls}
      details={screen.selection && <DetailsPanel selection={screen.selection} />}
    >
      <div className={styles.main}>
        <Toolbar screen={screen} counts={counts} filters={facets} />
        <Frame source={table} what={screen.table}>
          {(value) => shown && <TableArea screen={screen} spec={value.spec} shown={shown} total={value.total} />}
        </Frame>
      </div>
    </ViewLayout>
  );
}
