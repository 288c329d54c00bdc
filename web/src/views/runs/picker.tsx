// Which runs are compared: experiments, the workloads in them, their runs. A box chooses all below it; search narrows.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { RunExperiment, RunRow, RunTree, RunWorkload } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { changeRuns, openRun, toggleRuns } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import { TextSearch } from "../../widgets/text-search.tsx";
import { type ShownPage, sayApart } from "./groups.ts";
import styles from "./picker.module.css";
import { findRuns } from "./search.ts";

interface PickerProps {
  readonly tree: RunTree;
  readonly page: ShownPage;
}

export function Picker({ tree, page }: PickerProps) {
  const change = useChangeScreen();
  const rows = useMemo(() => new Map(tree.rows.map((row) => [row.run, row])), [tree]);
  const found = useMemo(() => findRuns(tree.rows, page.text), [tree, page.text]);
  const shown = tree.experiments.filter((experiment) => runsOf(experiment).some((run) => found.has(run)));
  return (
    <section className={styles.picker} aria-label="Runs to compare">
      <h2>Runs</h2>
      <TextSearch
        label="Filter runs"
        hint="Words, or comparisons such as lr>0.1 and user=ada; all must hold"
        value={page.text}
        onChange={(text) => change(changeRuns({ text }), "replace")}
      />
      {shown.length === 0 && <p className={styles.none}>No run is like that.</p>}
      <ul className={styles.tree}>
        {shown.map((experiment, at) => (
          <Experiment
            key={experiment.name ?? ""}
            experiment={experiment}
            isOpenAtFirst={at === 0 || shown.length <= 3 || page.text !== ""}
            rows={rows}
            found={found}
            page={page}
          />
        ))}
      </ul>
      {tree.left_out > 0 && <p className={styles.none}>{formatPlural(tree.left_out, "older run")} not listed.</p>}
    </section>
  );
}

function runsOf({ workloads }: RunExperiment): readonly string[] {
  return workloads.flatMap(({ runs }) => runs);
}

interface BranchProps {
  readonly rows: ReadonlyMap<string, RunRow>;
  readonly found: ReadonlySet<string>;
  readonly page: ShownPage;
}

function Experiment({
  experiment,
  isOpenAtFirst,
  ...branch
}: BranchProps & { experiment: RunExperiment; isOpenAtFirst: boolean }) {
  const runs = runsOf(experiment).filter((run) => branch.found.has(run));
  return (
    <Branch
      runs={runs}
      chosen={branch.page.runs}
      isOpenAtFirst={isOpenAtFirst}
      label={experiment.name ?? "no experiment"}
      detail={
        <>
          {formatPlural(runs.length, "run")}
          {experiment.last_at !== null && (
            <>
              {" · "}
              <RelativeTime at={experiment.last_at} />
            </>
          )}
        </>
      }
      isStrong
    >
      {experiment.workloads.map((workload) => (
        <Workload key={workload.id} workload={workload} {...branch} />
      ))}
    </Branch>
  );
}

function Workload({ workload, rows, found, page }: BranchProps & { workload: RunWorkload }) {
  const mine = workload.runs.flatMap((run) => rows.get(run) ?? []).filter(({ run }) => found.has(run));
  const labels = sayApart(mine);
  const [only] = mine;
  if (mine.length === 0) return null;
  const leaf = (row: RunRow, label: string) => <Leaf key={row.run} row={row} label={label} page={page} />;
  if (mine.length === 1 && only) return leaf(only, labels.get(only.run) ?? only.run);
  return (
    <Branch
      runs={mine.map(({ run }) => run)}
      chosen={page.runs}
      isOpenAtFirst
      label={workload.group ?? "together"}
      detail={
        workload.collocation === null || workload.collocation === "-"
          ? `${mine.length} at once`
          : `${mine.length} × ${workload.collocation.replace(/=.*/, "")}`
      }
    >
      {mine.map((row) => leaf(row, labels.get(row.run) ?? row.run))}
    </Branch>
  );
}

interface LeafProps {
  readonly row: RunRow;
  readonly label: string;
  readonly page: ShownPage;
}

function Leaf({ row, label, page }: LeafProps) {
  const change = useChangeScreen();
  const isFine = row.state === "completed" || row.state === "running";
  return (
    <li className={styles.leaf} data-open={page.open === row.run || undefined}>
      <input
        type="checkbox"
        aria-label={`Compare ${label}`}
        checked={page.runs.includes(row.run)}
        onChange={() => change(toggleRuns([row.run], page.runs), "replace")}
      />
      <button type="button" onClick={() => change(openRun(row))} data-tip={row.run}>
        {label}
      </button>
      {!isFine && <small data-bad={true}>{row.state.replaceAll("_", " ")}</small>}
      {row.state === "running" && <small>running</small>}
    </li>
  );
}

interface TreeBranchProps {
  readonly runs: readonly string[];
  readonly chosen: readonly string[];
  readonly isOpenAtFirst: boolean;
  readonly label: string;
  readonly detail: ReactNode;
  readonly isStrong?: boolean;
  readonly children: ReactNode;
}

function Branch({ runs, chosen, isOpenAtFirst, label, detail, isStrong = false, children }: TreeBranchProps) {
  const change = useChangeScreen();
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const count = runs.filter((run) => chosen.includes(run)).length;
  return (
    <li>
      <div className={styles.branch}>
        <PartBox
          label={`Compare all of ${label}`}
          isOn={count === runs.length}
          isPartly={count > 0 && count < runs.length}
          onToggle={() => change(toggleRuns(runs, chosen), "replace")}
        />
        <button
          type="button"
          aria-expanded={isOpen}
          data-strong={isStrong || undefined}
          onClick={() => setOpen(!isOpen)}
        >
          {label}
        </button>
        <small>{detail}</small>
      </div>
      {isOpen && <ul>{children}</ul>}
    </li>
  );
}

interface PartBoxProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly isPartly: boolean;
  onToggle(): void;
}

function PartBox({ label, isOn, isPartly, onToggle }: PartBoxProps) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current) box.current.indeterminate = isPartly;
  }, [isPartly]);
  return <input ref={box} type="checkbox" aria-label={label} checked={isOn} onChange={onToggle} />;
}
