// The overview: the cluster in numbers, its partitions, and everything in it as a picture or as a table to search, filter
// and open.

import { useDeferredValue, useMemo } from "react";
import { listFurther, useFurtherMetrics, useWithMetrics } from "../../data/further-metrics.ts";
import { useCluster } from "../../data/queries.ts";
import { useServices } from "../../data/services.ts";
import { type Units, useUnits } from "../../data/units.ts";
import { toggleFilter } from "../../state/changes.ts";
import type { Screen, TableName } from "../../state/screen.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { findNames } from "../../state/where.ts";
import { ClockContext } from "../../widgets/clock-context.ts";
import { Frame } from "../../widgets/frame.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { DetailsPanel } from "./details/details-panel.tsx";
import { markSelectedRows } from "./details/selected-rows.ts";
import type { Arrangement } from "./editor/use-arrangement.ts";
import { useEditor } from "./editor/use-editor.ts";
import { applyWhere, listPassing, type Narrowed } from "./filter/apply-where.ts";
import { Chips } from "./filter/chips.tsx";
import { Facets } from "./filter/facets.tsx";
import type { FilterColumns } from "./filter/filter-columns.ts";
import { FilterPanel } from "./filter/filter-panel.tsx";
import styles from "./overview.module.css";
import { PartitionList } from "./partition-list.tsx";
import { PictureControls } from "./picture/controls.tsx";
import { Picture } from "./picture/picture.tsx";
import { PictureCount } from "./picture/picture-count.tsx";
import { listAttributes } from "./picture/unit-columns.ts";
import { useLayoutWorker } from "./picture/use-layout.ts";
import { usePicture } from "./picture/use-picture.ts";
import { RowCount } from "./row-count.tsx";
import { RuleStrip } from "./rule-strip.tsx";
import { SummaryPlaceholder, SummaryStrip } from "./summary/summary-strip.tsx";
import { TableArea } from "./table-area.tsx";
import { orderRows } from "./tables/table-spec.ts";
import { useTable } from "./tables/use-table.ts";
import { useShownClock } from "./time/shown-clock.ts";
import { TimeBar } from "./time/time-bar.tsx";
import { Toolbar } from "./toolbar.tsx";

export default function Overview() {
  const screen = useScreen();
  const change = useChangeScreen();
  const cluster = useCluster();
  const editor = useEditor(screen);
  const { units, problem } = useUnitsToShow(screen, editor.arrangement);
  const table = useTable(screen, units);
  const spec = table.value?.spec;
  const sort = screen.sort ?? spec?.initialSort;
  const narrowed = useNarrowed(screen, spec?.attributes, units.value);

  const isPicture = screen.table === "picture";
  const { live } = useServices();
  const shownClock = useShownClock();
  const layoutWorker = useLayoutWorker(isPicture);
  // The rows of the picture are those of the table of units: indices into the snapshot.
  const picture = usePicture(screen, editor.arrangement, isPicture ? units.value : undefined, narrowed, problem);
  const rows = useMemo(
    () => (!isPicture && spec && narrowed && sort ? orderRows(spec, listPassing(narrowed), sort) : null),
    [isPicture, spec, narrowed, sort],
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
      {(value) => (
        <SummaryStrip cluster={value}>
          <RuleStrip screen={screen} units={units.value} light={picture?.light ?? null} />
        </SummaryStrip>
      )}
    </Frame>
  );
  const filter = spec &&
    narrowed && {
      table: screen.table,
      where: screen.where,
      columns: spec.attributes,
      narrowed,
      drawn: picture?.drawnRows ?? null,
    };
  const view = picture?.arrangement.view;
  const conditions = filter && (
    <FilterPanel
      {...filter}
      filtered={view ? { mode: view.filtered, onChange: (mode) => editor.edit({ ...view, filtered: mode }) } : null}
    />
  );
  const facets = filter && <Facets {...filter} />;
  const controls = (
    <div className={styles.controls}>
      {picture && <PictureControls model={picture} editor={editor} />}
      {conditions}
      <PartitionList
        partitions={summary?.partitions ?? []}
        chosen={findNames(screen.where, "partition").filter((name) => name !== null)}
        onToggle={(partition) => change(toggleFilter("partition", partition))}
      />
      <div className={styles.facets}>{facets}</div>
    </div>
  );
  return (
    <ViewLayout
      strip={strip}
      controls={controls}
      details={
        screen.selection && (
          <ClockContext value={shownClock}>
            <DetailsPanel selection={screen.selection} />
          </ClockContext>
        )
      }
      time={<TimeBar />}
    >
      <div className={styles.main} onPointerMoveCapture={isPicture ? live.touch : undefined}>
        <Toolbar
          screen={screen}
          counts={counts}
          filters={
            <>
              {conditions}
              {facets}
            </>
          }
          chips={<Chips screen={screen} isApplied={narrowed?.isApplied ?? []} />}
        >
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

/** The units with whatever colors, conditions and arrangement ask for; why some of it is missing. */
function useUnitsToShow(screen: Screen, arrangement: Arrangement | null) {
  const units = useUnits();
  const { color, where } = screen;
  const wanted = useMemo(() => {
    const view = arrangement?.view;
    const named = where.flat().map(({ attribute }) => attribute);
    return listFurther([...named, ...(color ? [color] : []), ...(view ? listAttributes(view) : [])]);
  }, [color, where, arrangement]);
  const further = useFurtherMetrics(wanted);
  const value = useWithMetrics(units.value, wanted, further);
  return { units: { ...units, value }, problem: wanted.length > 0 ? further.problem : null };
}

/** Typing stays quick however long the table is: the rows may lag a moment behind the letters. */
function useNarrowed(
  screen: Screen,
  columns: FilterColumns | undefined,
  units: Units | undefined,
): Narrowed | undefined {
  const where = useDeferredValue(screen.where);
  const text = useDeferredValue(screen.text);
  const within = useMemo(() => (units ? markSelectedRows(units, screen.within) : null), [units, screen.within]);
  const areUnits = screen.table === "picture" || screen.table === "units";
  return useMemo(() => {
    const mask = areUnits && within?.length === columns?.rowCount ? within : null;
    return columns && applyWhere(columns, where, text, mask);
  }, [columns, where, text, within, areUnits]);
}
