// The overview: the cluster in numbers, its partitions, and everything in it as a picture or as a table to search, filter
// and open.

import { useDeferredValue, useMemo } from "react";
import { useCluster } from "../../data/queries.ts";
import { useUnits } from "../../data/units.ts";
import { toggleFilter } from "../../state/changes.ts";
import type { Screen, TableName } from "../../state/screen.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Frame } from "../../widgets/frame.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { DetailsPanel } from "./details/details-panel.tsx";
import { useEditor } from "./editor/use-editor.ts";
import { Facets } from "./facets.tsx";
import styles from "./overview.module.css";
import { PartitionList } from "./partition-list.tsx";
import { PictureControls } from "./picture/controls.tsx";
import { Picture } from "./picture/picture.tsx";
import { PictureCount } from "./picture/picture-count.tsx";
import { useLayoutWorker } from "./picture/use-layout.ts";
import { usePicture } from "./picture/use-picture.ts";
import { RowCount } from "./row-count.tsx";
import { SummaryPlaceholder, SummaryStrip } from "./summary-strip.tsx";
import { TableArea } from "./table-area.tsx";
import { type Narrowing, narrowRows, orderRows } from "./tables/table-spec.ts";
import { useTable } from "./tables/use-table.ts";
import { Toolbar } from "./toolbar.tsx";

export default function Overview() {
  const screen = useScreen();
  const change = useChangeScreen();
  const cluster = useCluster();
  const table = useTable(screen);
  const narrowing = useNarrowing(screen);
  const spec = table.value?.spec;
  const sort = screen.sort ?? spec?.initialSort;
  const shown = useMemo(() => spec && narrowRows(spec, narrowing), [spec, narrowing]);
  const rows = useMemo(() => spec && shown && sort && orderRows(spec, shown.rows, sort), [spec, shown, sort]);

  const isPicture = screen.table === "picture";
  const layoutWorker = useLayoutWorker(isPicture);
  const units = useUnits();
  // The rows of the picture are those of the table of units: indices into the snapshot.
  const editor = useEditor(screen);
  const picture = usePicture(
    screen,
    editor.arrangement,
    isPicture ? units.value : undefined,
    shown?.rows as readonly number[] | undefined,
  );

  const summary = cluster.value;
  const counts: Record<TableName, number | undefined> = {
    picture: undefined,
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
      {picture && <PictureControls model={picture} editor={editor} />}
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
        <Toolbar screen={screen} counts={counts} filters={facets}>
          {picture && <PictureCount model={picture} />}
          {!isPicture && rows && table.value && <RowCount table={screen.table} rows={rows} {...table.value} />}
        </Toolbar>
        <Frame source={table} what={isPicture ? "units" : screen.table}>
          {(value) => {
            if (picture && value.spec.rows.length > 0)
              return <Picture worker={layoutWorker} model={picture} selection={screen.selection} />;
            return rows && sort && <TableArea screen={screen} spec={value.spec} rows={rows} sort={sort} />;
          }}
        </Frame>
      </div>
    </ViewLayout>
  );
}

/** Typing stays quick however long the table is: the rows may lag a moment behind the letters. */
function useNarrowing(screen: Screen): Narrowing {
  const filters = useDeferredValue(screen.filters);
  const text = useDeferredValue(screen.text);
  return useMemo(() => ({ filters, text }), [filters, text]);
}
