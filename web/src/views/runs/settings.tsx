// Settings of lines: smoothing, warm-up and outliers.

import { changeRuns, type RunsPage } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import styles from "./runs.module.css";

const AXIS_UNITS = { time: "s", step: "steps", epoch: "epochs" };

export function Settings({ page }: { page: RunsPage }) {
  const change = useChangeScreen();
  const set = (changes: Partial<RunsPage>) => change(changeRuns(changes), "replace");
  return (
    <section className={styles.settings} aria-label="Lines">
      <h2>Lines</h2>
      <label>
        Smoothing
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={page.smoothing}
          onChange={(event) => set({ smoothing: Number(event.target.value) })}
        />
        <output>{page.smoothing === 0 ? "off" : page.smoothing.toFixed(2)}</output>
      </label>
      <label>
        Skip first
        <input
          type="number"
          min={0}
          value={page.warmUp}
          onChange={(event) => set({ warmUp: Math.max(0, Number(event.target.value) || 0) })}
        />
        <output>{AXIS_UNITS[page.axis]}</output>
      </label>
      <label>
        Drop outliers beyond
        <select value={page.outliers} onChange={(event) => set({ outliers: Number(event.target.value) })}>
          {[0, 0.5, 1, 2, 5].map((percentile) => (
            <option key={percentile} value={percentile}>
              {percentile === 0 ? "none" : `p${percentile} and p${100 - percentile}`}
            </option>
          ))}
        </select>
      </label>
    </section>
  );
}
