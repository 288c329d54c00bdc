// Toolbar of the comparison: chart type, grouping, axis, metrics, insights and export.

import type { RunMetrics } from "../../api/generated.ts";
import { useHang } from "../../data/runs.ts";
import {
  changeRuns,
  RUN_AXES,
  RUN_BANDS,
  RUN_GROUPINGS,
  type RunAxis,
  type RunBand,
  type RunDrawing,
  type RunGrouping,
  type RunsPage,
} from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { ExportMenu } from "../../widgets/export-menu.tsx";
import { Segmented } from "../../widgets/segmented.tsx";
import type { ShownPage } from "./groups.ts";
import { InsightMenu } from "./insights.tsx";
import { MetricMenu } from "./metric-menu.tsx";
import styles from "./runs.module.css";

interface ToolbarProps {
  readonly page: ShownPage;
  readonly available: RunMetrics | undefined;
  readonly metrics: readonly string[];
  onCsv(): void;
  onSvg(): void;
  onPng(): void;
  onHtml(): void;
}

const DRAWINGS: readonly { readonly value: RunDrawing; readonly title: string }[] = [
  { value: "lines", title: "Lines" },
  { value: "bars", title: "Bars" },
  { value: "scatter", title: "Scatter" },
  { value: "parallel", title: "Params" },
  { value: "table", title: "Table" },
  { value: "hang", title: "Hang" },
];

const AXIS_TITLES: Readonly<Record<RunAxis, string>> = { time: "Over time", step: "Over steps", epoch: "Over epochs" };
const GROUPING_TITLES: Readonly<Record<RunGrouping, string>> = {
  run: "Each run",
  repeats: "Group repeats",
  workload: "Group workloads",
  experiment: "Group experiments",
};
const BAND_TITLES: Readonly<Record<RunBand, string>> = {
  interval: "95 % interval",
  range: "Minimum to maximum",
  deviation: "± 1 standard deviation",
};

export function Toolbar({ page, available, metrics, onCsv, onSvg, onPng, onHtml }: ToolbarProps) {
  const change = useChangeScreen();
  const set = (changes: Partial<RunsPage>) => change(changeRuns(changes), "replace");
  const axes = RUN_AXES.filter(
    (axis) => axis === page.axis || axis === "time" || (axis === "step" ? available?.has_steps : available?.has_epochs),
  );
  const hasHang = useHang(page.open).value?.report != null;
  const drawings = DRAWINGS.filter(({ value }) => value !== "hang" || hasHang || page.drawing === "hang");
  return (
    <div className={styles.toolbar} role="toolbar" aria-label="Comparison">
      <Segmented
        label="Display as"
        name="chart"
        options={drawings}
        value={page.drawing}
        onChange={(drawing) => change(changeRuns({ drawing }))}
      />
      <Choice
        label="Grouping"
        value={page.grouping}
        titles={GROUPING_TITLES}
        choices={RUN_GROUPINGS}
        onChange={(grouping) => set({ grouping })}
      />
      {page.drawing === "lines" && (
        <>
          <Choice
            label="X axis"
            value={page.axis}
            titles={AXIS_TITLES}
            choices={axes}
            onChange={(axis) => set({ axis })}
          />
          {page.axis === "time" && available && available.phases.length > 0 && (
            <Choice
              label="Align at"
              value={page.phase}
              titles={{
                "": "From the start",
                ...Object.fromEntries(available.phases.map((name) => [name, `From ${name}`])),
              }}
              choices={["", ...available.phases]}
              onChange={(phase) => set({ phase })}
            />
          )}
          {page.grouping !== "run" && (
            <Choice
              label="Band"
              value={page.band}
              titles={BAND_TITLES}
              choices={RUN_BANDS}
              onChange={(band) => set({ band })}
            />
          )}
          {available && <MetricMenu available={available} metrics={metrics} />}
        </>
      )}
      <span className={styles.space} />
      <InsightMenu page={page} />
      <ExportMenu
        what="the comparison"
        isWord
        files={{ csv: onCsv, ...(page.drawing === "table" ? {} : { png: onPng, svg: onSvg }), html: onHtml }}
        hints={{ csv: "runs and their quantities", html: "charts and table, without a server" }}
      />
    </div>
  );
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly titles: Readonly<Record<T, string>>;
  readonly choices: readonly T[];
  onChange(value: T): void;
}

function Choice<T extends string>({ label, value, titles, choices, onChange }: ChoiceProps<T>) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value as T)}>
      {choices.map((choice) => (
        <option key={choice} value={choice}>
          {titles[choice]}
        </option>
      ))}
    </select>
  );
}
