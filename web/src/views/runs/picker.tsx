// Tree of experiments, workloads and runs that selects the runs to compare; with a filter.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { RunExperiment, RunRow, RunTree, RunWorkload } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { changeRuns, openRun, toggleRuns } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import { TextSearch } from "../../widgets/text-search.tsx";
import { describeSharing, labelRuns, labelWorkloads, type ShownPage } from "./groups.ts";
import styles from "./picker.module.css";
import { describeRun } from "./run-facts.ts";
import { findRuns } from "./search.ts";

interface PickerProps {
  readonly tree: RunTree;
  readonly page: ShownPage;
}

export function Picker({ tree, page }: PickerProps) {
  const change = useChangeScreen();
  const rows = useMemo(() => new Map(tree.rows.map((row) => [row.run, row])), [tree]);
  const matches = useMemo(() => findRuns(tree.rows, page.text), [tree, page.text]);
  const shown = tree.experiments.filter((experiment) => runsOf(experiment).some((run) => matches.has(run)));
  return (
    <section className={styles.picker} aria-label="Runs to compare">
      <h2>Runs</h2>
      <TextSearch
        label="Filter runs"
        hint="Words, or comparisons such as lr>0.1 and user=ada; all must match"
        value={page.text}
        onChange={(text) => change(changeRuns({ text }), "replace")}
      />
      {shown.length === 0 && <p className={styles.none}>No runs match.</p>}
      <ul className={styles.tree}>
        {shown.map((experiment, at) => (
          <Experiment
            key={experiment.name ?? ""}
            experiment={experiment}
            isInitiallyOpen={at === 0 || shown.length <= 3 || page.text !== ""}
            rows={rows}
            matches={matches}
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
  readonly matches: ReadonlySet<string>;
  readonly page: ShownPage;
}

function Experiment({
  experiment,
  isInitiallyOpen,
  ...branch
}: BranchProps & { experiment: RunExperiment; isInitiallyOpen: boolean }) {
  const runs = runsOf(experiment).filter((run) => branch.matches.has(run));
  const labels = useMemo(() => labelWorkloads(experiment, branch.rows), [experiment, branch.rows]);
  return (
    <Branch
      runs={runs}
      selected={branch.page.runs}
      isInitiallyOpen={isInitiallyOpen}
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
        <Workload key={workload.id} workload={workload} label={labels.get(workload.id) ?? "workload"} {...branch} />
      ))}
    </Branch>
  );
}

function Workload({
  workload,
  label,
  rows,
  matches,
  page,
}: BranchProps & { readonly workload: RunWorkload; readonly label: string }) {
  const workloadRows = workload.runs.flatMap((run) => rows.get(run) ?? []).filter(({ run }) => matches.has(run));
  const labels = labelRuns(workloadRows);
  const [only] = workloadRows;
  const sharing = only ? describeSharing(only) : null;
  if (workloadRows.length === 0) return null;
  const leaf = (row: RunRow, name: string) => <Leaf key={row.run} row={row} label={name} page={page} />;
  if (workload.runs.length === 1 && only) return leaf(only, label);
  return (
    <Branch
      runs={workloadRows.map(({ run }) => run)}
      selected={page.runs}
      isInitiallyOpen
      label={label}
      detail={
        sharing === null
          ? `${workloadRows.length} in parallel`
          : `${workloadRows.length} × ${sharing.replace(/=.*/, "")}`
      }
    >
      {workloadRows.map((row) => leaf(row, labels.get(row.run) ?? row.run))}
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
  const isHealthy = row.state === "completed" || row.state === "running";
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
      {!isHealthy && <small data-bad={true}>{row.state.replaceAll("_", " ")}</small>}
      {row.state === "running" && <small>running</small>}
      <small className={styles.when}>{describeRun(row)}</small>
    </li>
  );
}

interface TreeBranchProps {
  readonly runs: readonly string[];
  readonly selected: readonly string[];
  readonly isInitiallyOpen: boolean;
  readonly label: string;
  readonly detail: ReactNode;
  readonly isStrong?: boolean;
  readonly children: ReactNode;
}

function Branch({ runs, selected, isInitiallyOpen, label, detail, isStrong = false, children }: TreeBranchProps) {
  const change = useChangeScreen();
  const [isOpen, setOpen] = useState(isInitiallyOpen);
  const count = runs.filter((run) => selected.includes(run)).length;
  return (
    <li>
      <div className={styles.branch}>
        <TreeCheckbox
          label={`Compare all of ${label}`}
          isOn={count === runs.length}
          isPartial={count > 0 && count < runs.length}
          onToggle={() => change(toggleRuns(runs, selected), "replace")}
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

interface TreeCheckboxProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly isPartial: boolean;
  onToggle(): void;
}

function TreeCheckbox({ label, isOn, isPartial, onToggle }: TreeCheckboxProps) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current) box.current.indeterminate = isPartial;
  }, [isPartial]);
  return <input ref={box} type="checkbox" aria-label={label} checked={isOn} onChange={onToggle} />;
}
