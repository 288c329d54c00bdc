// Simulator: what other orders and ways of backfilling would do to a recorded trace, measured with intervals.

import type { SimulationAnswer, SimulationAsk } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { toSentence } from "../../../base/problem.ts";
import { useSimulation } from "../../../data/job-traces.ts";
import type { SimulatorChoice } from "../../../state/scheduling.ts";
import { useScreen } from "../../../state/use-screen.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { ViewLayout } from "../../../widgets/view-layout.tsx";
import { colorAt } from "../drawing/trace-colors.ts";
import { SpreadCard } from "../history/distribution-cards.tsx";
import { sayUnits } from "../history/words.ts";
import { SimulatorControls } from "./controls.tsx";
import { CourseCards } from "./course-cards.tsx";
import { GanttCard } from "./gantt-card.tsx";
import { MeasureCards } from "./measure-cards.tsx";
import styles from "./simulator.module.css";
import { nameChoice } from "./words.ts";

const JITTERED_RUNS = 5;

export default function SimulatorTab() {
  const { scheduling } = useScreen();
  const asked = toAsk(scheduling.simulator);
  const simulation = useSimulation(asked);
  return (
    <ViewLayout
      strip={<Strip answer={asked ? simulation.value : undefined} />}
      controls={<SimulatorControls choice={scheduling.simulator} />}
      details={null}
    >
      <div className={styles.main}>
        {asked === null ? (
          <p className={styles.none}>Choose a trace, at least one order and one way of backfilling.</p>
        ) : (
          <Frame source={simulation} what="the simulation">
            {(answer) => <Results answer={answer} />}
          </Frame>
        )}
      </div>
    </ViewLayout>
  );
}

export function toAsk({ trace, orders, fills, rules, machine }: SimulatorChoice): SimulationAsk | null {
  if (trace === "" || orders.length === 0 || fills.length === 0) return null;
  const processors = Number.parseInt(machine, 10);
  return {
    trace,
    policies: orders,
    backfills: fills,
    semantics: rules,
    processors: processors > 0 ? processors : null,
    jitter: JITTERED_RUNS,
  };
}

function Strip({ answer }: { answer: SimulationAnswer | undefined }) {
  if (!answer) return null;
  const left = answer.notes.filter(({ action }) => action === "dropped").reduce((sum, { count }) => sum + count, 0);
  return (
    <div className={styles.strip}>
      <b>{answer.trace}</b>
      <span>
        {formatCount(answer.simulated_jobs)} jobs on {sayUnits(answer.processors, answer.size_unit)}
        {left > 0 && `, ${formatCount(left)} left out`}; semantics {answer.semantics}
      </span>
      {answer.state === "running" && (
        <label>
          <progress max={1} value={answer.progress} aria-label="Simulating" /> {formatRatio(answer.progress)}
        </label>
      )}
    </div>
  );
}

function Results({ answer }: { answer: SimulationAnswer }) {
  if (answer.state === "failed") {
    return (
      <p className={styles.none} role="alert">
        {toSentence(answer.problem ?? "The simulation failed")}
      </p>
    );
  }
  if (answer.choices.length === 0) {
    return (
      <p className={styles.none} role="status">
        Simulating. The first one on a machine compiles the engine, which takes some tens of seconds.
      </p>
    );
  }
  const waits = answer.choices.map((choice) => ({ name: nameChoice(choice), spread: choice.wait_s }));
  return (
    <div className={styles.results}>
      <ul className={styles.legend} aria-label="Simulated choices">
        {answer.choices.map((choice, place) => (
          <li key={nameChoice(choice)} data-tip={`fingerprint ${choice.fingerprint.slice(0, 16)}`}>
            <i style={{ background: colorAt(place) }} /> {nameChoice(choice)}
          </li>
        ))}
      </ul>
      <MeasureCards answer={answer} />
      <div className={styles.cards}>
        <SpreadCard title="Waits" isTime xTitle="wait" spreads={waits} shape="distribution" />
        <CourseCards answer={answer} />
        <GanttCard answer={answer} />
      </div>
    </div>
  );
}
