// The tab Predictions: the models in use, their accuracy on unseen jobs, and the calibration of forecasts.

import type { Coverage, ModelCards, ReliabilityAnswer } from "../../../api/generated.ts";
import { formatCount, formatRatio, MISSING } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { useJobTraces, useModels, useReliability, useTracePredictions } from "../../../data/job-traces.ts";
import { changeScheduling, changeSimulator, OWN_TRACE } from "../../../state/scheduling.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { Figure, Strip } from "../../../widgets/strip.tsx";
import { ViewLayout } from "../../../widgets/view-layout.tsx";
import { TraceUpload } from "../history/trace-upload.tsx";
import { AccuracyCards } from "./accuracy-cards.tsx";
import { EmptyChart, MIN_FOR_SHARES } from "./empty-chart.tsx";
import { ModelList } from "./model-list.tsx";
import styles from "./quality.module.css";
import { countCovered, ReliabilityCards } from "./reliability-cards.tsx";

const SHOWN_LEVEL = 0.9;

export default function QualityTab() {
  const models = useModels();
  const reliability = useReliability();
  const { scheduling } = useScreen();
  return (
    <ViewLayout
      strip={<QualityStrip models={models.value} reliability={reliability.value} />}
      controls={
        <div className={styles.controls}>
          <PredictedTrace />
          <Frame source={models} what="models">
            {(value) => <ModelList cards={value} />}
          </Frame>
        </div>
      }
      details={null}
    >
      <div className={styles.main}>
        <h2>Run times</h2>
        {scheduling.predicted === OWN_TRACE ? (
          <Frame source={models} what="models">
            {(value) => <OwnAccuracy cards={value} />}
          </Frame>
        ) : (
          <TraceAccuracy trace={scheduling.predicted} />
        )}
        <h2>Waits</h2>
        <Frame source={reliability} what="the reliability of forecasts">
          {(value) => <ReliabilityCards reliability={value} />}
        </Frame>
      </div>
    </ViewLayout>
  );
}

/** Selects whose run times are predicted: those of this cluster, or of an uploaded trace. */
function PredictedTrace() {
  const { scheduling } = useScreen();
  const change = useChangeScreen();
  const traces = useJobTraces();
  return (
    <section aria-label="Trace">
      <h2>Run times of</h2>
      <Frame source={traces} what="job traces">
        {(list) => (
          <select
            aria-label="Trace"
            value={scheduling.predicted}
            onChange={(event) => change(changeScheduling({ predicted: event.target.value }))}
          >
            {list.traces.map(({ trace, name, is_own }) => (
              <option key={trace} value={trace}>
                {is_own ? `${name}, history of this cluster` : name}
              </option>
            ))}
          </select>
        )}
      </Frame>
      <TraceUpload onUploaded={({ trace }) => change(changeScheduling({ predicted: trace }))} />
    </section>
  );
}

/** Predictors compared on an uploaded trace: trained on its first jobs, tested on the last. */
function TraceAccuracy({ trace }: { trace: string }) {
  const predictions = useTracePredictions(trace);
  const change = useChangeScreen();
  const simulate = () => change((screen) => changeScheduling({ tab: "simulator" })(changeSimulator({ trace })(screen)));
  return (
    <Frame source={predictions} what="the predictions">
      {({ name, report }) => (
        <>
          <p className={styles.caption}>
            {name}: trained on {formatCount(report.trained)} jobs that had ended, tested on the last{" "}
            {formatCount(report.tested)}. The{" "}
            <button type="button" onClick={simulate}>
              simulator
            </button>{" "}
            can plan by these predictions.
          </p>
          <AccuracyCards report={report} />
        </>
      )}
    </Frame>
  );
}

function OwnAccuracy({ cards }: { cards: ModelCards }) {
  const report = cards.models.find((model) => model.report !== null)?.report;
  if (report) return <AccuracyCards report={report} />;
  const jobsNeeded = cards.models[0]?.retrained_after;
  return (
    <EmptyChart title="No predictions to compare yet">
      {jobsNeeded
        ? `The run-time model is trained when ${formatCount(jobsNeeded)} more jobs of this cluster have ended. Predictors are then compared on the jobs submitted last.`
        : "Predictors are compared once a model is trained on jobs of this cluster."}
    </EmptyChart>
  );
}

interface StripProps {
  readonly models: ModelCards | undefined;
  readonly reliability: ReliabilityAnswer | undefined;
}

function QualityStrip({ models, reliability }: StripProps) {
  const trained = models?.models.filter(({ is_trained }) => is_trained).length;
  const atSubmission = reliability?.told.find(({ nominal }) => nominal === SHOWN_LEVEL);
  const coverage = atSubmission ?? reliability?.later.find(({ nominal }) => nominal === SHOWN_LEVEL);
  return (
    <Strip>
      <Figure value={models ? `${trained} of ${models.models.length}` : MISSING} label="models trained" />
      <Figure value={formatCount(reliability && reliability.jobs + reliability.later_jobs)} label="forecasts checked" />
      <Figure value={formatCount(reliability?.open)} label="forecasts pending" />
      <Figure value={formatCoverage(coverage)} label="inside the 90 % interval" />
      <Figure value={formatDuration(reliability?.median_error_s)} label="median error of starts" />
    </Strip>
  );
}

/** The share, or counts where there are too few for one. */
function formatCoverage(coverage: Coverage | undefined): string {
  if (!coverage) return MISSING;
  return coverage.jobs < MIN_FOR_SHARES ? countCovered(coverage) : formatRatio(coverage.covered);
}
