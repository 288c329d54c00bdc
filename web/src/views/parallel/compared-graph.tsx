// The graph of a second trace below the first, on the same time scale; both start at the start of their step.

import { useMemo } from "react";
import { useSteps, useTrace } from "../../data/traces.ts";
import type { NsWindow, ParallelPage } from "../../state/parallel.ts";
import { Frame } from "../../widgets/frame.tsx";
import { type GraphActions, MareyGraph } from "./graph/marey-graph.tsx";
import styles from "./parallel.module.css";
import { makeScene } from "./scene.ts";
import { listSteps } from "./steps.ts";

interface ComparedGraphProps extends GraphActions {
  readonly trace: string;
  readonly page: ParallelPage;
  /** The window of the first graph, and its offset from the start of its step. */
  readonly window: NsWindow;
  readonly offsetNs: number;
}

export function ComparedGraph({ trace, page, window, offsetNs, ...actions }: ComparedGraphProps) {
  const answer = useTrace(trace);
  const table = useSteps(trace, answer.value?.report != null);
  const steps = useMemo(() => (table.value ? listSteps(table.value) : []), [table.value]);
  const length = window.toNs - window.fromNs;
  return (
    <div className={styles.one}>
      <Frame source={answer} what="the second trace">
        {(value) => {
          const { extent, originNs, stepEndsNs, step } = makeScene(value, steps, null);
          const fromNs = originNs + offsetNs;
          const shift = window.fromNs - fromNs;
          return (
            <>
              <h3 className={styles.second}>{value.row.name}</h3>
              <MareyGraph
                {...actions}
                trace={trace}
                title={value.row.name}
                page={{
                  ...page,
                  level: value.stages.length <= 1 && page.level === "stage" ? "rank" : page.level,
                  span: null,
                }}
                window={{ fromNs, toNs: fromNs + length }}
                extent={extent}
                originNs={originNs}
                stepEndsNs={stepEndsNs}
                step={step}
                curve={null}
                detailOf={() => null}
                ranksOf={() => []}
                onWindow={(other, isStep) =>
                  actions.onWindow({ fromNs: other.fromNs + shift, toNs: other.toNs + shift }, isStep)
                }
                onSelect={() => {}}
              />
            </>
          );
        }}
      </Frame>
    </div>
  );
}
