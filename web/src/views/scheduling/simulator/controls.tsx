// Options of a simulation: trace, orders, backfilling, run-time estimates, semantics and machine size.

import { useState } from "react";
import { ESTIMATES, RULE_PRESETS } from "../../../base/catalogue.ts";
import { useJobTraces, useSimulatorOptions } from "../../../data/job-traces.ts";
import { changeSimulator, type Estimates, type RulePreset, type SimulatorChoice } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { TraceUpload } from "../history/trace-upload.tsx";
import { SavedResults } from "./saved-results.tsx";
import styles from "./simulator.module.css";
import { nameBackfill, namePolicy, parseOmegas } from "./words.ts";

const ESTIMATE_TITLES: Readonly<Record<Estimates, string>> = {
  request: "Requested",
  actual: "Actual",
  predicted: "Last two",
  boosted: "Boosted",
  "elapsed-aware": "Elapsed-aware",
};

const ESTIMATE_HINTS: Readonly<Record<Estimates, string>> = {
  request: "The time limit",
  actual: "The real run time, which no scheduler knows",
  predicted: "From the user’s last two jobs, corrected when a job runs longer",
  boosted: "Boosted trees, trained on the jobs that had ended by then; corrected when a job runs longer",
  "elapsed-aware": "A forest, trained likewise, which predicts again from the elapsed time when a job runs longer",
};

const RULES: Readonly<Record<RulePreset, string>> = {
  clusterscape: "ClusterScape",
  pyss: "pyss",
  dirlab: "DIR-LAB",
  cqsim: "CQSim",
  poster: "Zhang & Dai",
};

export function SimulatorControls({ choice }: { choice: SimulatorChoice }) {
  const change = useChangeScreen();
  const traces = useJobTraces();
  const options = useSimulatorOptions();
  const set = (changes: Partial<SimulatorChoice>) => change(changeSimulator(changes));
  return (
    <div>
      <section aria-label="Trace">
        <h2>Trace</h2>
        <Frame source={traces} what="job traces">
          {(list) => (
            <select aria-label="Trace" value={choice.trace} onChange={(event) => set({ trace: event.target.value })}>
              <option value="">Select a trace</option>
              {list.traces.map(({ trace, name, is_own }) => (
                <option key={trace} value={trace}>
                  {is_own ? `${name}, history of this cluster` : name}
                </option>
              ))}
            </select>
          )}
        </Frame>
        <TraceUpload onUploaded={({ trace }) => set({ trace })} />
      </section>
      <Frame source={options} what="policies">
        {({ policies, backfills, relaxed }) => (
          <>
            <Choices
              title="Orders"
              names={policies}
              chosen={choice.orders}
              label={namePolicy}
              onChange={(orders) => set({ orders })}
            />
            <Choices
              title="Backfilling"
              names={backfills}
              chosen={choice.fills}
              label={nameBackfill}
              onChange={(fills) => set({ fills })}
            />
            {choice.fills.some((fill) => relaxed.includes(fill)) && (
              <Omegas
                key={choice.omegas.join()}
                value={choice.omegas.join(", ")}
                onChange={(omegas) => set({ omegas })}
              />
            )}
          </>
        )}
      </Frame>
      <section aria-label="Estimates">
        <h2>Run-time estimates</h2>
        <div className={styles.choices}>
          {ESTIMATES.map((value) => (
            <label key={value}>
              <input
                type="radio"
                name="estimates"
                checked={choice.estimates === value}
                onChange={() => set({ estimates: value })}
              />
              {ESTIMATE_TITLES[value]}
            </label>
          ))}
        </div>
        <small className={styles.hint}>{ESTIMATE_HINTS[choice.estimates]}</small>
      </section>
      <section aria-label="Semantics">
        <h2>Semantics</h2>
        <select
          aria-label="Semantics"
          value={choice.rules}
          data-tip="Simulators differ in details that the name of a policy leaves open. Selects whose rules apply"
          onChange={(event) => {
            const rules = RULE_PRESETS.find((preset) => preset === event.target.value);
            if (rules) set({ rules });
          }}
        >
          {RULE_PRESETS.map((name) => (
            <option key={name} value={name}>
              {RULES[name]}
            </option>
          ))}
        </select>
      </section>
      <Machine key={choice.machine} value={choice.machine} onChange={(machine) => set({ machine })} />
      <SavedResults result={choice.result} />
    </div>
  );
}

interface ChoicesProps {
  readonly title: string;
  readonly names: readonly string[];
  readonly chosen: readonly string[];
  label(name: string): string;
  onChange(chosen: readonly string[]): void;
}

function Choices({ title, names, chosen, label, onChange }: ChoicesProps) {
  const toggle = (name: string) =>
    onChange(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]);
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <div className={styles.choices}>
        {names.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
            {label(name)}
          </label>
        ))}
      </div>
    </section>
  );
}

function Omegas({ value, onChange }: { value: string; onChange(omegas: readonly string[]): void }) {
  const [text, setText] = useState(value);
  const omegas = parseOmegas(text);
  const submit = () => omegas && omegas.join(", ") !== value && onChange(omegas);
  return (
    <section aria-label="Relaxation">
      <h2>Relaxation factor</h2>
      <input
        type="text"
        inputMode="decimal"
        aria-label="Relaxation factors"
        aria-invalid={omegas === undefined}
        value={text}
        data-tip="How far the promised start of the first job may slip, as a share of its expected wait. Separate several by commas to compare them"
        onChange={(event) => setText(event.target.value)}
        onBlur={submit}
        onKeyDown={(event) => event.key === "Enter" && submit()}
      />
      {omegas === undefined && <small className={styles.hint}>Numbers from 0 to 10, such as 0.05, 0.1</small>}
    </section>
  );
}

function Machine({ value, onChange }: { value: string; onChange(value: string): void }) {
  const [text, setText] = useState(value);
  const submit = () => text !== value && onChange(text);
  return (
    <section aria-label="Machine">
      <h2>Machine</h2>
      <input
        type="number"
        min={1}
        max={10_000_000}
        aria-label="Machine size"
        placeholder="from the trace"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={submit}
        onKeyDown={(event) => event.key === "Enter" && submit()}
      />
    </section>
  );
}
