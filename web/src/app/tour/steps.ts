// The steps of the tour. Each names its target on the page and opens a screen that exists on any cluster.

import { openView, type ScreenChange, select, showTable } from "../../state/changes.ts";
import { diagnose } from "../../state/diagnostics.ts";
import { changeScheduling } from "../../state/scheduling.ts";

/** The workloads that the tour opens; null: there is none. */
export interface TourExamples {
  /** The running workload that is most worth a diagnosis. */
  readonly running: string | null;
  /** The workload that has waited longest. */
  readonly waiting: string | null;
}

export interface TourStep {
  readonly title: string;
  readonly text: string;
  /** Selectors of the target, best first. */
  readonly places: readonly string[];
  open(examples: TourExamples): ScreenChange;
}

const showOverview: ScreenChange = (screen) => showTable("picture")(openView("overview")(screen));

export const TOUR: readonly TourStep[] = [
  {
    title: "A square is a GPU",
    text: "The boxes around it show its project, user and workload. Its color shows a metric, here utilization. Point at a square to read its values, click it to select its workload, scroll to zoom.",
    places: ['[aria-label="Picture of all units"]'],
    open: () => showOverview,
  },
  {
    title: "Arrange squares to answer a question",
    text: "Each card is a layer of boxes. Drag, remove or add a layer, and every square moves to its new place. Start from one of the four views below; your layout is in the link and can be shared.",
    places: ['section[aria-label="Layout"]', '[aria-label="Controls"]'],
    open: () => showOverview,
  },
  {
    title: "Rules find wasted GPUs",
    text: "A rule checks every workload over its whole life: busy but stalled, held but idle. Each chip shows how many GPUs violate the rule now and marks their squares. “+ rule” defines a new rule and tests it on past data first.",
    places: ['section[aria-label="Rules"]', '[aria-label="Summary"]'],
    open: () => showOverview,
  },
  {
    title: "Which GPU is the outlier?",
    text: "A diagnosis compares all GPUs of a workload and explains which ones behave differently, when, and what they have in common. Click a finding to see its GPUs in every chart.",
    places: ['section[aria-label="Findings"]', "main"],
    open: ({ running }) => (running === null ? openView("diagnostics") : diagnose(running)),
  },
  {
    title: "Why does it wait?",
    text: "For each waiting workload: what it waits for, who is ahead, when it will likely start and how that estimate changed. Before you submit, see when a job of your size would start, or simulate another policy.",
    places: ['[aria-label="Details"]', "main"],
    open:
      ({ waiting }) =>
      (screen) =>
        select(waiting === null ? null : { kind: "workload", key: waiting })(
          changeScheduling({ tab: "queue" })(openView("scheduling")(screen)),
        ),
  },
];
