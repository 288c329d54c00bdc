// The overview: the cluster in numbers, its partitions, and all units as a picture or a table to search, filter and
// open.

import { lazy, Suspense, useDeferredValue, useMemo } from "react";
import { listExtraMetrics, useExtraMetrics, useWithMetrics } from "../../data/extra-metrics.ts";
import { useCluster } from "../../data/queries.ts";
import { useServices } from "../../data/services.ts";
import { type Units, useUnits } from "../../data/units.ts";
import { useShownClock } from "../../parts/time/shown-clock.ts";
import { select } from "../../state/changes.ts";
import type { Screen, TableName } from "../../state/screen.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { ClockContext } from "../../widgets/clock-context.ts";
import { Frame } from "../../widgets/frame.tsx";
import { useEscape } from "../../widgets/use-escape.ts";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { markSelectedRows } from "./details/selected-rows.ts";
import type { Arrangement } from "./editor/use-arrangement.ts";
import { useEditor } from "./editor/use-editor.ts";
import { applyWhere, listPassing, type Narrowed } from "./filter/apply-where.ts";
import { Chips } from "./filter/chips.tsx";
import type { FilterColumns } from "./filter/filter-columns.ts";
import styles from "./overview.module.css";
import { Picture } from "./picture/picture.tsx";
import { PictureCount } from "./picture/picture-count.tsx";
import { listAttributes } from "./picture/unit-columns.ts";
import { startLayoutWorker, useLayoutWorker } from "./picture/use-layout.ts";
import { usePicture } from "./picture/use-picture.ts";
import { TableRowCount } from "./row-count.tsx";
import { SummaryPlaceholder, SummaryStrip } from "./summary/summary-strip.tsx";
import { orderRows } from "./tables/table-spec.ts";
import { useTable } from "./tables/use-table.ts";
import { Toolbar } from "./toolbar.tsx";
import { useSettled } from "./use-settled.ts";

startLayoutWorker();

// What the first picture does without.
const Controls = lazy(() => import("./controls.tsx"));
const Filters = lazy(async () => ({ default: (await import("./controls.tsx")).Filters }));
const DetailsPanel = lazy(async () => ({ default: (await import("./details/details-panel.tsx")).DetailsPanel }));
const EmptySite = lazy(async () => ({ default: (await import("./empty-site.tsx")).EmptySite }));
const RuleStrip = lazy(async () => ({ default: (await import("./rule-strip.tsx")).RuleStrip }));
const TableArea = lazy(async () => ({ default: (await import("./table-area.tsx")).TableArea }));
const WaitingBar = lazy(async () => ({ default: (await import("./waiting/waiting-bar.tsx")).WaitingBar }));
const TimeBar = lazy(async () => ({ default: (await import("../../parts/time/time-bar.tsx")).TimeBar }));

export default function Overview() {
  const screen = useScreen();
  const change = useChangeScreen();
  // Here and not in the panel, which comes later than the selection: who presses it before then means it, too.
  useEscape(() => change(select(null)));
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
  const isWaiting = isPicture && !problem && !units.problem && table.value?.spec.rows.length !== 0;
  const [isSettled, settle] = useSettled(isWaiting);
  const strip = (
    <Frame source={cluster} what="the summary" placeholder={<SummaryPlaceholder />}>
      {(value) => <SummaryStrip cluster={value} />}
    </Frame>
  );
  const filter = spec && narrowed ? { screen, columns: spec.attributes, narrowed, picture, editor } : null;
  const controls = isSettled && (
    <Suspense>
      <Controls
        screen={screen}
        partitions={summary?.partitions ?? []}
        picture={picture}
        editor={editor}
        filter={filter}
      />
    </Suspense>
  );
  return (
    <ViewLayout
      strip={strip}
      controls={controls}
      details={
        screen.selection && (
          <ClockContext value={shownClock}>
            <Suspense>
              <DetailsPanel selection={screen.selection} />
            </Suspense>
          </ClockContext>
        )
      }
      time={
        <div className={styles.time}>
          <Suspense>{isSettled && <TimeBar />}</Suspense>
        </div>
      }
    >
      <div className={styles.main} onPointerMoveCapture={isPicture ? live.touch : undefined}>
        <Toolbar
          screen={screen}
          counts={counts}
          filters={<Suspense>{filter && <Filters {...filter} />}</Suspense>}
          rules={
            <Suspense>
              {isSettled && <RuleStrip screen={screen} units={units.value} highlight={picture?.highlight ?? null} />}
            </Suspense>
          }
          chips={<Chips screen={screen} isApplied={narrowed?.isApplied ?? []} />}
        >
          {picture && <PictureCount model={picture} />}
          {!isPicture && rows && table.value && <TableRowCount table={screen.table} rows={rows} {...table.value} />}
        </Toolbar>
        <Suspense>{isPicture && isSettled && <WaitingBar arrangement={editor.arrangement} editor={editor} />}</Suspense>
        <Frame source={table} what={isPicture ? "units" : screen.table}>
          {(value) => {
            if (isPicture && value.spec.rows.length === 0) return <Suspense>{isSettled && <EmptySite />}</Suspense>;
            if (picture)
              return <Picture worker={layoutWorker} model={picture} selection={screen.selection} onPlaced={settle} />;
            if (rows === null || !sort) return null;
            return (
              <Suspense>
                <TableArea screen={screen} spec={value.spec} rows={rows} sort={sort} />
              </Suspense>
            );
          }}
        </Frame>
      </div>
    </ViewLayout>
  );
}

/** The units with all metrics that colors, conditions and arrangement need, and why some are missing. */
function useUnitsToShow(screen: Screen, arrangement: Arrangement | null) {
  const units = useUnits();
  const { color, where } = screen;
  const metrics = useMemo(() => {
    const view = arrangement?.view;
    const named = where.flat().map(({ attribute }) => attribute);
    return listExtraMetrics([...named, ...(color ? [color] : []), ...(view ? listAttributes(view) : [])]);
  }, [color, where, arrangement]);
  const extra = useExtraMetrics(metrics);
  const value = useWithMetrics(units.value, metrics, extra);
  return { units: { ...units, value }, problem: metrics.length > 0 ? extra.problem : null };
}

/** Deferred, so that typing stays responsive: rows may lag behind the text. */
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
