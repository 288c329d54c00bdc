// What is simulated: which trace, which orders with which ways of backfilling, by whose rules, on how large a machine.

import { useState } from "react";
import { ESTIMATES, RULE_PRESETS } from "../../../base/catalogue.ts";
import { useJobTraces, useSimulatorOptions } from "../../../data/job-traces.ts";
import { changeSimulator, type Estimates, type RulePreset, type SimulatorChoice } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import { TraceUpload } from "../history/trace-upload.tsx";
import { KeptResults } from "./kept-results.tsx";
import styles from "./simulator.module.css";
import { nameBackfill, namePolicy, parseOmegas } from "./words.ts";

const ESTIMATE_TITLES: Readonly<Record<Estimates, string>> = {
  request: "As asked",
  actual: "As known",
  predicted: "Predicted",
};

const ESTIMATE_HINTS: Readonly<Record<Estimates, string>> = {
  request: "by the time limit",
  actual: "by how long each job will really run, which no scheduler knows",
  predicted: "from the user’s last two jobs, corrected where one runs longer",
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
              <option value="">choose one</option>
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
              say={namePolicy}
              onChange={(orders) => set({ orders })}
            />
            <Choices
              title="Backfilling"
              names={backfills}
              chosen={choice.fills}
              say={nameBackfill}
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
        <h2>Run times are taken</h2>
        <Segmented
          label="Estimates"
          name="estimates"
          value={choice.estimates}
          options={ESTIMATES.map((value) => ({ value, title: ESTIMATE_TITLES[value] }))}
          onChange={(estimates) => set({ estimates })}
        />
        <small className={styles.hint}>{ESTIMATE_HINTS[choice.estimates]}</small>
      </section>
      <section aria-label="Semantics">
        <h2>Semantics</h2>
        <select
          aria-label="Semantics"
          value={choice.rules}
          data-tip="Simulators settle in silence what the name of a policy leaves open; this says whose way"
          onChange={(event) => {
            const rules = RULE_PRESETS.find((each) => each === event.target.value);
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
      <KeptResults result={choice.result} />
    </div>
  );
}

interface ChoicesProps {
  readonly title: string;
  readonly names: readonly string[];
  readonly chosen: readonly string[];
  say(name: string): string;
  onChange(chosen: readonly string[]): void;
}

function Choices({ title, names, chosen, say, onChange }: ChoicesProps) {
  const toggle = (name: string) =>
    onChange(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name]);
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <div className={styles.choices}>
        {names.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
            {say(name)}
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
        data-tip="By which share of the head’s expected wait its promise may slip. Several, with commas between, are compared."
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
        aria-label="Size of the machine"
        placeholder="as the trace says"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={submit}
        onKeyDown={(event) => event.key === "Enter" && submit()}
      />
    </section>
  );
}
