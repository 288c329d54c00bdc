// The tab Simulator: what other orders and backfilling would do to a recorded job trace, measured with intervals.

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
import { formatUnits } from "../history/words.ts";
import { SimulatorControls } from "./controls.tsx";
import { CourseCards } from "./course-cards.tsx";
import { GanttCard } from "./gantt-card.tsx";
import { MeasureCards, MeasureTable } from "./measure-cards.tsx";
import styles from "./simulator.module.css";
import { SizeCard, StarvationWarning } from "./size-card.tsx";
import { TradeOffCard } from "./trade-off-card.tsx";
import { ESTIMATE_WORDS, nameChoice } from "./words.ts";

const JITTERED_RUNS = 5;

export default function SimulatorTab() {
  const { scheduling } = useScreen();
  const change = useChangeScreen();
  const request = toRequest(scheduling.simulator);
  const { result } = scheduling.simulator;
  const simulation = useSimulation(request, result);
  const ownResult = request !== null && simulation.isOwn ? simulation.value?.simulation : undefined;
  // The link names the result, so that a reload, or another user, sees the same.
  useEffect(() => {
    if (ownResult !== undefined && ownResult !== result) change(changeSimulator({ result: ownResult }), "replace");
  }, [ownResult, result, change]);
  return (
    <ViewLayout
      strip={request && <SimulatorStrip simulation={simulation} />}
      controls={<SimulatorControls choice={scheduling.simulator} />}
      details={null}
    >
      <div className={styles.main}>
        {request === null ? (
          <Message>Select a trace, at least one order and one backfilling.</Message>
        ) : (
          <Frame source={simulation} what="the simulation">
            {(answer) => <Results answer={answer} />}
          </Frame>
        )}
      </div>
    </ViewLayout>
  );
}

export function toRequest(choice: SimulatorChoice): SimulationAsk | null {
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
  const skipped = answer.notes.filter(({ action }) => action === "dropped").reduce((sum, { count }) => sum + count, 0);
  return (
    <Strip className={styles.strip}>
      <b>{answer.trace}</b>
      <span>
        {[
          `${formatPlural(answer.simulated_jobs, "job")} on ${formatUnits(answer.processors, answer.size_unit)}`,
          ...(skipped > 0 ? [`${formatCount(skipped)} skipped`] : []),
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
        <Button onClick={simulation.again}>Resume</Button>
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
          ? "Stopped before the first result."
          : "Simulating. The first simulation on a server compiles the engine, which takes tens of seconds."}
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
      <StarvationWarning answer={answer} />
      <MeasureTable answer={answer} />
      <TradeOffCard answer={answer} />
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
