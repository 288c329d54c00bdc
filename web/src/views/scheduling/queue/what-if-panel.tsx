// Results of a what-if: measures with paired differences, warnings, changed starts, and the GPU allocation.

import type { MeasureChange, RoomChange, StartChange, WhatIfAnswer, WhatIfWarning } from "../../../api/generated.ts";
import { classNames } from "../../../base/class-names.ts";
import { formatCount, formatPlural, formatRatio } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { type AskedWhatIf, useWhatIf } from "../../../data/scheduling.ts";
import { OpenLink } from "../../../parts/panel/panel.tsx";
import type { SchedulingPage } from "../../../state/scheduling.ts";
import { Button } from "../../../widgets/button.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { ProgressBar } from "../../../widgets/progress-bar.tsx";
import { Warning } from "../../../widgets/warning.tsx";
import { CoursePicture } from "./course-picture.tsx";
import styles from "./what-if.module.css";
import { listChangedStarts } from "./what-if-changes.ts";
import { formatChange, nativeId } from "./words.ts";

export function WhatIfPanel({ page }: { page: SchedulingPage }) {
  const answer = useWhatIf(page.whatIf);
  const isSimulating = answer.progress !== null;
  if (answer.value === undefined && answer.problem === null) {
    return (
      <section className={styles.panel} aria-label="What-if results" aria-busy={isSimulating}>
        <p className={styles.empty}>
          {answer.isStopped ? "The simulation was stopped." : "Simulating the current queue and the change."}
        </p>
        <Progress answer={answer} />
      </section>
    );
  }
  return (
    <section className={styles.panel} aria-label="What-if results" aria-busy={isSimulating}>
      <Frame source={answer} what="the simulation">
        {(value) => (
          <>
            <header className={styles.head}>
              <h2>With {value.changes.join(", ") || "no change"}</h2>
              <small data-tip={value.assumptions.join(" ")}>
                {formatPlural(value.simulated, "waiting workload")}, {value.futures} sampled futures
              </small>
              <Progress answer={answer} />
            </header>
            <Room rows={value.room} />
            {value.warnings.map((warning) => (
              <WarningMessage key={warning.kind} warning={warning} />
            ))}
            <div className={styles.columns}>
              <Measures measures={value.measures} placement={value.placement} />
              <div className={styles.side}>
                <ChangedStarts answer={value} />
              </div>
            </div>
            <CoursePicture course={value.course} ahead={page.ahead} />
          </>
        )}
      </Frame>
    </section>
  );
}

/** The progress of the simulation, with a button to stop or restart it. */
function Progress({ answer }: { answer: AskedWhatIf }) {
  if (answer.isStopped) return <Button onClick={answer.again}>Simulate again</Button>;
  if (answer.progress === null) return null;
  return (
    <span className={styles.progress} role="status">
      <ProgressBar label="Simulating" value={answer.progress} /> {formatRatio(answer.progress)}
      <Button onClick={answer.stop}>Cancel</Button>
    </span>
  );
}

function WarningMessage({ warning }: { warning: WhatIfWarning }) {
  return (
    <Warning>
      <strong>{warning.title}.</strong> {warning.text}{" "}
      {warning.workloads.map((workload) => (
        <span key={workload}>
          <OpenLink kind="workload" name={workload}>
            {nativeId(workload)}
          </OpenLink>{" "}
        </span>
      ))}
    </Warning>
  );
}

/** How many more of the waiting workloads would have room if recent starts had used the chosen placement. */
function Room({ rows }: { rows: readonly RoomChange[] }) {
  const changed = rows.filter(({ now, changed }) => now !== changed);
  if (rows.length === 0) return null;
  return (
    <section className={styles.room} aria-label="Room with this placement">
      {changed.length === 0 && <p>No waiting workload would have room because of this placement alone.</p>}
      {changed.slice(0, MAX_ROOM).map((row) => (
        <p key={`${row.partition} ${row.nodes} ${row.gpus}`} data-better={row.changed > row.now || undefined}>
          <strong>{describeRoom(row)}</strong> in {row.partition}
          <small>
            {formatCount(row.changed)} instead of {formatCount(row.now)} of {formatCount(row.waiting)} waiting
          </small>
        </p>
      ))}
      <small data-tip="The starts since then are placed again, at the same times and for as long">
        had all starts of the last 3 days used this placement
      </small>
    </section>
  );
}

const MAX_ROOM = 3;

/** "7 more 8-GPU jobs could start now" */
export function describeRoom({ gpus, now, changed }: RoomChange): string {
  const count = Math.abs(changed - now);
  return `${formatCount(count)} ${changed > now ? "more" : "fewer"} ${formatCount(gpus)}-GPU ${count === 1 ? "job" : "jobs"} could start now`;
}

const VERDICTS: Readonly<Record<string, string>> = {
  better: "better",
  worse: "worse",
  unclear: "no clear difference",
  same: "the same",
};

function Measures({ measures, placement }: Pick<WhatIfAnswer, "measures" | "placement">) {
  return (
    <table className={styles.measures}>
      <thead>
        <tr>
          <th scope="col">Measure</th>
          <th scope="col" data-tip={placement.text}>
            Current
          </th>
          <th scope="col">With the change</th>
          <th scope="col" data-tip="Paired over the same futures, with the 95 % interval of the mean">
            Difference
          </th>
        </tr>
      </thead>
      <tbody>
        {measures.map((measure) => (
          <tr key={measure.name}>
            <th scope="row">{measure.title}</th>
            <td>{formatMeasure(measure.baseline, measure.unit)}</td>
            <td>{formatMeasure(measure.changed, measure.unit)}</td>
            <td className={classNames(styles[measure.verdict])}>
              <span data-tip={VERDICTS[measure.verdict]}>{formatDifference(measure)}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function formatMeasure(value: number, unit: string): string {
  if (unit === "s") return formatDuration(value);
  const digits = Math.abs(value) < 1 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return `${value.toFixed(digits)}${unit === "" ? "" : ` ${unit}`}`;
}

/** A difference with its interval; "same" where it is about zero. */
export function formatDifference({ difference, low, high, unit, verdict }: MeasureChange): string {
  if (verdict === "same") return "same";
  const sign = (value: number) => (value < 0 ? "−" : "+");
  const show = (value: number) => `${sign(value)}${formatMeasure(Math.abs(value), unit)}`;
  if (verdict === "unclear" && Math.abs(difference) < 1e-3) return "same";
  return `${show(difference)} (${show(low)} … ${show(high)})`;
}

const MAX_SHOWN = 8;

function ChangedStarts({ answer }: { answer: WhatIfAnswer }) {
  const starts = listChangedStarts(answer.workloads);
  return (
    <div className={styles.starts}>
      <h3>Changed starts</h3>
      {starts.length === 0 && <p>No workload starts noticeably sooner or later.</p>}
      <ul>
        {starts.slice(0, MAX_SHOWN).map((row) => (
          <ChangedStartRow key={row.workload} row={row} />
        ))}
      </ul>
      {starts.length > MAX_SHOWN && <p>{starts.length - MAX_SHOWN} more.</p>}
    </div>
  );
}

function ChangedStartRow({ row }: { row: StartChange }) {
  const change = row.change_s ?? 0;
  return (
    <li data-tip={`80 % interval: ${formatChange(row.low_s ?? 0)} to ${formatChange(row.high_s ?? 0)}`}>
      <span>
        <OpenLink kind="workload" name={row.workload}>
          {nativeId(row.workload)}
        </OpenLink>{" "}
        {row.user}
      </span>
      <small>{formatPlural(row.gpus, "GPU")}</small>
      <b className={change > 0 ? styles.worse : styles.better}>{formatChange(change)}</b>
    </li>
  );
}
