// Above the charts: how runs are drawn, over what, taken together or not, and how to take the comparison along.

import type { RunMetrics } from "../../api/generated.ts";
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
  readonly known: RunMetrics | undefined;
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
];

const AXIS_WORDS: Readonly<Record<RunAxis, string>> = { time: "over time", step: "over steps", epoch: "over epochs" };
const GROUPING_WORDS: Readonly<Record<RunGrouping, string>> = {
  run: "each run",
  repeats: "repeats together",
  workload: "workloads together",
  experiment: "experiments together",
};
const BAND_WORDS: Readonly<Record<RunBand, string>> = {
  interval: "95 % interval",
  range: "lowest to highest",
  deviation: "± one deviation",
};

export function Toolbar({ page, known, metrics, onCsv, onSvg, onPng, onHtml }: ToolbarProps) {
  const change = useChangeScreen();
  const set = (changes: Partial<RunsPage>) => change(changeRuns(changes), "replace");
  const axes = RUN_AXES.filter(
    (axis) => axis === page.axis || axis === "time" || (axis === "step" ? known?.has_steps : known?.has_epochs),
  );
  return (
    <div className={styles.toolbar} role="toolbar" aria-label="Comparison">
      <Segmented
        label="Drawn as"
        name="chart"
        options={DRAWINGS}
        value={page.drawing}
        onChange={(drawing) => change(changeRuns({ drawing }))}
      />
      <Choice
        label="What is one line or bar"
        value={page.grouping}
        words={GROUPING_WORDS}
        choices={RUN_GROUPINGS}
        onChange={(grouping) => set({ grouping })}
      />
      {page.drawing === "lines" && (
        <>
          <Choice
            label="Over what"
            value={page.axis}
            words={AXIS_WORDS}
            choices={axes}
            onChange={(axis) => set({ axis })}
          />
          {page.axis === "time" && known && known.phases.length > 0 && (
            <Choice
              label="Aligned at"
              value={page.phase}
              words={{
                "": "from the start",
                ...Object.fromEntries(known.phases.map((name) => [name, `from ${name}`])),
              }}
              choices={["", ...known.phases]}
              onChange={(phase) => set({ phase })}
            />
          )}
          {page.grouping !== "run" && (
            <Choice
              label="Band"
              value={page.band}
              words={BAND_WORDS}
              choices={RUN_BANDS}
              onChange={(band) => set({ band })}
            />
          )}
          {known && <MetricMenu known={known} metrics={metrics} />}
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
  readonly words: Readonly<Record<T, string>>;
  readonly choices: readonly T[];
  onChange(value: T): void;
}

function Choice<T extends string>({ label, value, words, choices, onChange }: ChoiceProps<T>) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value as T)}>
      {choices.map((choice) => (
        <option key={choice} value={choice}>
          {words[choice]}
        </option>
      ))}
    </select>
  );
}
