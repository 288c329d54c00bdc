// Simulator: what other orders and ways of backfilling would do to a recorded trace, measured with intervals.

import { useEffect } from "react";
import type { SimulationAnswer, SimulationAsk } from "../../../api/generated.ts";
import { formatCount, formatPlural, formatRatio } from "../../../base/format.ts";
import { toSentence } from "../../../base/problem.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { type RunningSimulation, useSimulation } from "../../../data/job-traces.ts";
import { ChartCards } from "../../../parts/charts/chart-card.tsx";
import { changeSimulator, type SimulatorChoice } from "../../../state/scheduling.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { Frame, Message } from "../../../widgets/frame.tsx";
import { Legend } from "../../../widgets/legend.tsx";
import { ProgressBar } from "../../../widgets/progress-bar.tsx";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { Strip } from "../../../widgets/strip.tsx";
import { ViewLayout } from "../../../widgets/view-layout.tsx";
import { SpreadCard } from "../history/distribution-cards.tsx";
import { sayUnits } from "../history/words.ts";
import { SimulatorControls } from "./controls.tsx";
import { CourseCards } from "./course-cards.tsx";
import { GanttCard } from "./gantt-card.tsx";
import { MeasureCards, MeasureTable } from "./measure-cards.tsx";
import styles from "./simulator.module.css";
import { SizeCard, Starved } from "./size-card.tsx";
import { ESTIMATE_WORDS, nameChoice } from "./words.ts";

const JITTERED_RUNS = 5;

export default function SimulatorTab() {
  const { scheduling } = useScreen();
  const change = useChangeScreen();
  const asked = toAsk(scheduling.simulator);
  const { result } = scheduling.simulator;
  const simulation = useSimulation(asked, result);
  const made = asked !== null && simulation.isOwn ? simulation.value?.simulation : undefined;
  // The link leads to what was made of the choice, so that a reload, or somebody else, sees the same.
  useEffect(() => {
    if (made !== undefined && made !== result) change(changeSimulator({ result: made }), "replace");
  }, [made, result, change]);
  return (
    <ViewLayout
      strip={asked && <SimulatorStrip simulation={simulation} />}
      controls={<SimulatorControls choice={scheduling.simulator} />}
      details={null}
    >
      <div className={styles.main}>
        {asked === null ? (
          <Message>Choose a trace, at least one order and one way of backfilling.</Message>
        ) : (
          <Frame source={simulation} what="the simulation">
            {(answer) => <Results answer={answer} />}
          </Frame>
        )}
      </div>
    </ViewLayout>
  );
}

export function toAsk(choice: SimulatorChoice): SimulationAsk | null {
  const { trace, orders, fills, rules, estimates, omegas, machine } = choice;
  if (trace === "" || orders.length === 0 || fills.length === 0) return null;
  const processors = Number.parseInt(machine, 10);
  return {
    trace,
    policies: orders,
    backfills: fills,
    semantics: rules,
    estimates,
    omegas: omegas.length > 0 ? omegas.map(Number) : [0.1],
    processors: processors > 0 ? processors : null,
    jitter: JITTERED_RUNS,
  };
}

function SimulatorStrip({ simulation }: { simulation: RunningSimulation }) {
  const answer = simulation.value;
  if (!answer) return null;
  const left = answer.notes.filter(({ action }) => action === "dropped").reduce((sum, { count }) => sum + count, 0);
  return (
    <Strip className={styles.strip}>
      <b>{answer.trace}</b>
      <span>
        {[
          `${formatPlural(answer.simulated_jobs, "job")} on ${sayUnits(answer.processors, answer.size_unit)}`,
          ...(left > 0 ? [`${formatCount(left)} left out`] : []),
          ESTIMATE_WORDS[answer.asked.estimates ?? "request"],
          `semantics ${answer.semantics}`,
        ].join(", ")}
      </span>
      <State simulation={simulation} answer={answer} />
    </Strip>
  );
}

function State({ simulation, answer }: { simulation: RunningSimulation; answer: SimulationAnswer }) {
  if (answer.state === "running") {
    return (
      <span className={styles.state} role="status">
        <ProgressBar label="Simulating" value={answer.progress} /> {formatRatio(answer.progress)}
        <Button onClick={simulation.stop}>Cancel</Button>
      </span>
    );
  }
  return (
    <span className={styles.state}>
      {answer.state === "stopped" ? "stopped" : "simulated"}
      {answer.state === "stopped" ? (
        <Button onClick={simulation.again}>Go on</Button>
      ) : (
        <RelativeTime at={answer.made_at} />
      )}
    </span>
  );
}

function Results({ answer }: { answer: SimulationAnswer }) {
  if (answer.state === "failed") {
    return <Message role="alert">{toSentence(answer.problem ?? "The simulation failed")}</Message>;
  }
  if (answer.choices.length === 0) {
    return (
      <Message role="status">
        {answer.state === "stopped"
          ? "Stopped before the first choice was done."
          : "Simulating. The first one on a machine compiles the engine, which takes some tens of seconds."}
      </Message>
    );
  }
  const waits = answer.choices.map((choice) => ({ name: nameChoice(choice), spread: choice.wait_s }));
  return (
    <div className={styles.results}>
      <Legend aria-label="Simulated choices">
        {answer.choices.map((choice, place) => (
          <li key={nameChoice(choice)} data-tip={`fingerprint ${choice.fingerprint.slice(0, 16)}`}>
            <i data-swatch={true} style={{ background: colorAt(place) }} /> {nameChoice(choice)}
          </li>
        ))}
      </Legend>
      <Starved answer={answer} />
      <MeasureTable answer={answer} />
      <ChartCards>
        <MeasureCards answer={answer} />
        <SpreadCard title="Waits" isTime xTitle="wait" spreads={waits} shape="distribution" />
        <SizeCard answer={answer} />
        <CourseCards answer={answer} />
        <GanttCard answer={answer} />
      </ChartCards>
    </div>
  );
}
