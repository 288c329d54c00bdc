// What the tour shows, step by step. A step says where to look; what it opens exists on any cluster, or it shows the page without it.

import { openView, type ScreenChange, select, showTable } from "../../state/changes.ts";
import { diagnose } from "../../state/diagnostics.ts";
import { changeScheduling } from "../../state/scheduling.ts";

/** What of this cluster the tour opens; null: there is none. */
export interface TourExamples {
  /** The running workload that is most worth a diagnosis. */
  readonly running: string | null;
  /** The workload that has waited longest. */
  readonly waiting: string | null;
}

export interface TourStep {
  readonly title: string;
  readonly text: string;
  /** Where it is on the page, best first. */
  readonly places: readonly string[];
  open(examples: TourExamples): ScreenChange;
}

const showOverview: ScreenChange = (screen) => showTable("picture")(openView("overview")(screen));

export const TOUR: readonly TourStep[] = [
  {
    title: "A square is a GPU",
    text: "Boxes around it say whose it is: project, user, workload. Its color is a metric, here utilization. Point at a square to read it, click it for its workload and its neighbors, scroll to zoom.",
    places: ['[aria-label="Picture of all units"]'],
    open: () => showOverview,
  },
  {
    title: "Arrange it by what you ask",
    text: "Each card is a layer of boxes. Drag one, remove one or add another, and every square flies to its new place. The views below are four good starts; whatever you make is in the address and can be shared.",
    places: ['section[aria-label="Layout"]', '[aria-label="Controls"]'],
    open: () => showOverview,
  },
  {
    title: "Rules find what is wasted",
    text: "A rule watches every workload over its whole life: busy yet stalled, held yet idle. Chips count who breaks it now and mark their squares. “+” writes your own and tries it on the past first.",
    places: ['section[aria-label="Rules"]', '[aria-label="Summary"]'],
    open: () => showOverview,
  },
  {
    title: "Which GPU is the odd one?",
    text: "A diagnosis compares all GPUs of one workload, says in words which behave differently and when, and what they have in common. Click a finding to see its GPUs in every chart.",
    places: ['section[aria-label="Findings"]', "main"],
    open: ({ running }) => (running === null ? openView("diagnostics") : diagnose(running)),
  },
  {
    title: "Why does it wait?",
    text: "For each waiting workload: what it waits for, who is ahead, when it likely starts and how that moved. Before submitting, ask when a job of your size would start; or try what another policy would do.",
    places: ['[aria-label="Details"]', "main"],
    open:
      ({ waiting }) =>
      (screen) =>
        select(waiting === null ? null : { kind: "workload", key: waiting })(
          changeScheduling({ tab: "queue" })(openView("scheduling")(screen)),
        ),
  },
];
