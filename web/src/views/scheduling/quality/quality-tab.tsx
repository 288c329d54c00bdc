// The tab Predictions: the models in use, their accuracy on unseen jobs, and the calibration of forecasts.

import type { ModelCards, ReliabilityAnswer } from "../../../api/generated.ts";
import { formatCount, formatRatio, MISSING } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { useModels, useReliability } from "../../../data/job-traces.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { Figure, Strip } from "../../../widgets/strip.tsx";
import { ViewLayout } from "../../../widgets/view-layout.tsx";
import { AccuracyCards } from "./accuracy-cards.tsx";
import { ModelList } from "./model-list.tsx";
import styles from "./quality.module.css";
import { ReliabilityCards } from "./reliability-cards.tsx";

const SHOWN_LEVEL = 0.9;

export default function QualityTab() {
  const models = useModels();
  const reliability = useReliability();
  return (
    <ViewLayout
      hasNoControls
      strip={<QualityStrip models={models.value} reliability={reliability.value} />}
      controls={
        <div className={styles.controls}>
          <Frame source={models} what="models">
            {(value) => <ModelList cards={value} />}
          </Frame>
        </div>
      }
      details={null}
    >
      <div className={styles.main}>
        <h2>Run times</h2>
        <Frame source={models} what="models">
          {(value) => <AccuracyCards cards={value} />}
        </Frame>
        <h2>Waits</h2>
        <Frame source={reliability} what="the reliability of forecasts">
          {(value) => <ReliabilityCards reliability={value} />}
        </Frame>
      </div>
    </ViewLayout>
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
      <Figure value={coverage ? formatRatio(coverage.covered) : MISSING} label="inside the 90 % interval" />
      <Figure value={formatDuration(reliability?.median_error_s)} label="median error of starts" />
    </Strip>
  );
}
