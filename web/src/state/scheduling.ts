// The scheduling page in a link: tab, queue, the job before submission, the what-if changes and the simulation.

import { ESTIMATES, RULE_PRESETS } from "../base/catalogue.ts";
import { choiceField, type Field, textField } from "./fields.ts";
import type { Screen } from "./screen.ts";

export const SCHEDULING_TABS = ["queue", "history", "simulator", "quality"] as const;
export type SchedulingTab = (typeof SCHEDULING_TABS)[number];

export const QUEUE_COLUMNS = [
  "position",
  "workload",
  "user",
  "partition",
  "asked",
  "waited",
  "start",
  "reason",
] as const;
export type QueueColumn = (typeof QUEUE_COLUMNS)[number];

export interface QueueSort {
  readonly column: QueueColumn;
  readonly descending: boolean;
}

/** A what-if change of the queue. Empty texts and lists: unchanged. */
export interface WhatIfChoice {
  readonly policy: string;
  readonly backfill: string;
  readonly placement: string;
  /** Nodes that start no new workloads. */
  readonly drained: readonly string[];
  /** `partition:count` — nodes like those the partition has most of. */
  readonly added: readonly string[];
  /** `partition:GPUs` — the most one workload may ask for there. */
  readonly limits: readonly string[];
  /** Workloads put first in their queues. */
  readonly first: readonly string[];
}

/** A job that has not been submitted. */
export interface WaitAsk {
  readonly gpus: number;
  readonly hours: number;
  /** Empty: any. */
  readonly partition: string;
}

export const DISTRIBUTION_SHAPES = ["distribution", "histogram"] as const;
export type DistributionShape = (typeof DISTRIBUTION_SHAPES)[number];

export type RulePreset = (typeof RULE_PRESETS)[number];

export type Estimates = (typeof ESTIMATES)[number];

/** What the simulator compares: every order with every way of backfilling. */
export interface SimulatorChoice {
  readonly trace: string;
  readonly orders: readonly string[];
  readonly fills: readonly string[];
  readonly rules: RulePreset;
  /** The run time estimates that the scheduler uses. */
  readonly estimates: Estimates;
  /** ω of relaxed backfilling; each is simulated. */
  readonly omegas: readonly string[];
  /** Size of the machine; empty: as the trace says. */
  readonly machine: string;
  /** The saved result of this simulation; empty: not simulated yet. */
  readonly result: string;
}

export interface SchedulingPage {
  readonly tab: SchedulingTab;
  /** Only this partition's queue; empty: all. */
  readonly queue: string;
  /** What is searched for in the queue. */
  readonly text: string;
  readonly sort: QueueSort;
  readonly whatIf: WhatIfChoice;
  readonly ask: WaitAsk | null;
  /** The time of the what-if picture, in hours from now. */
  readonly ahead: number;
  /** Job traces described side by side. */
  readonly history: readonly string[];
  readonly shape: DistributionShape;
  readonly simulator: SimulatorChoice;
  /** The trace whose run times are predicted. */
  readonly predicted: string;
}

/** This cluster's own history. */
export const OWN_TRACE = "cluster";
export const MOST_TRACES = 4;

export const NO_WHAT_IF: WhatIfChoice = {
  policy: "",
  backfill: "",
  placement: "",
  drained: [],
  added: [],
  limits: [],
  first: [],
};

const WORD = /^[a-z0-9+_-]{1,40}$/;
const OMEGA = /^\d{1,2}(\.\d{1,4})?$/;
const PAIR = /^[^:]{1,120}:\d{1,7}$/;
const NAME = /^\S{1,160}$/;
const MOST_NAMES = 200;

function wordField(key: string): Field<string> {
  return {
    key,
    initial: "",
    parse: ([text = ""]) => (WORD.test(text) ? text : undefined),
    serialize: (word) => (word === "" ? [] : [word]),
  };
}

function listField(
  key: string,
  form: RegExp,
  most = MOST_NAMES,
  initial: readonly string[] = [],
): Field<readonly string[]> {
  return {
    key,
    initial,
    parse(texts) {
      const names = [...new Set(texts)].filter((text) => text !== "");
      return names.length <= most && names.every((name) => form.test(name)) ? names : undefined;
    },
    serialize(names) {
      if (names.join() === initial.join()) return [];
      // An empty choice differs from no choice.
      return names.length === 0 ? [""] : names;
    },
  };
}

function hoursField(key: string, initial: number): Field<number> {
  return {
    key,
    initial,
    parse: ([text = ""]) => (/^\d{1,3}(\.\d{1,2})?$/.test(text) ? Number(text) : undefined),
    serialize: (hours) => (hours === initial ? [] : [String(hours)]),
  };
}

const resultField: Field<string> = {
  key: "result",
  initial: "",
  parse: ([text = ""]) => (/^[0-9a-f]{8,64}$/.test(text) ? text : undefined),
  serialize: (result) => (result === "" ? [] : [result]),
};

/** The key of a trace; by default this cluster's history. */
function traceField(key: string): Field<string> {
  return {
    key,
    initial: OWN_TRACE,
    parse: ([text = ""]) => (NAME.test(text) ? text : undefined),
    serialize: (trace) => (trace === OWN_TRACE ? [] : [trace]),
  };
}

const INITIAL_SORT: QueueSort = { column: "position", descending: false };

const sortField: Field<QueueSort> = {
  key: "order",
  initial: INITIAL_SORT,
  parse([text = ""]) {
    const descending = text.startsWith("-");
    const column = QUEUE_COLUMNS.find((candidate) => candidate === text.slice(descending ? 1 : 0));
    return column === undefined ? undefined : { column, descending };
  },
  serialize: ({ column, descending }) =>
    column === INITIAL_SORT.column && descending === INITIAL_SORT.descending
      ? []
      : [`${descending ? "-" : ""}${column}`],
};

const ASK = /^(\d{1,6})x(\d{1,4}(?:\.\d{1,2})?)h(?:@(.{1,120}))?$/;

const askField: Field<WaitAsk | null> = {
  key: "ask",
  initial: null,
  parse([text = ""]) {
    const [, gpus, hours, partition = ""] = ASK.exec(text) ?? [];
    if (gpus === undefined || hours === undefined) return undefined;
    const ask = { gpus: Number(gpus), hours: Number(hours), partition };
    return ask.gpus > 0 && ask.hours > 0 ? ask : undefined;
  },
  serialize: (ask) => (ask ? [`${ask.gpus}x${ask.hours}h${ask.partition && `@${ask.partition}`}`] : []),
};

const FIELDS = {
  tab: choiceField<SchedulingTab>("tab", SCHEDULING_TABS, "queue"),
  queue: textField("queue"),
  text: textField("find_waiting"),
  sort: sortField,
  ask: askField,
  ahead: hoursField("ahead", 6),
  history: listField("history", NAME, MOST_TRACES, [OWN_TRACE]),
  shape: choiceField<DistributionShape>("shape", DISTRIBUTION_SHAPES, "distribution"),
  predicted: traceField("predict"),
};

const SIMULATOR_FIELDS = {
  trace: textField("simulate"),
  orders: listField("orders", WORD, 9, ["fcfs", "sjf"]),
  fills: listField("fills", WORD, 9, ["easy"]),
  rules: choiceField<RulePreset>("semantics", RULE_PRESETS, "clusterscape"),
  estimates: choiceField<Estimates>("estimates", ESTIMATES, "request"),
  omegas: listField("omega", OMEGA, 6, ["0.1"]),
  machine: textField("machine"),
  result: resultField,
} satisfies { readonly [K in keyof SimulatorChoice]: Field<SimulatorChoice[K]> };

const WHAT_IF_FIELDS = {
  policy: wordField("policy"),
  backfill: wordField("backfill"),
  placement: wordField("placement"),
  drained: listField("drain", NAME),
  added: listField("add", PAIR),
  limits: listField("cap", PAIR),
  first: listField("first", NAME),
} satisfies { readonly [K in keyof WhatIfChoice]: Field<WhatIfChoice[K]> };

export const INITIAL_SCHEDULING: SchedulingPage = {
  tab: "queue",
  queue: "",
  text: "",
  sort: INITIAL_SORT,
  whatIf: NO_WHAT_IF,
  ask: null,
  ahead: 6,
  history: [OWN_TRACE],
  shape: "distribution",
  simulator: {
    trace: "",
    orders: ["fcfs", "sjf"],
    fills: ["easy"],
    rules: "clusterscape",
    estimates: "request",
    omegas: ["0.1"],
    machine: "",
    result: "",
  },
  predicted: OWN_TRACE,
};

export function parseScheduling(read: <T>(field: Field<T>) => T): SchedulingPage {
  return {
    tab: read(FIELDS.tab),
    queue: read(FIELDS.queue),
    text: read(FIELDS.text),
    sort: read(FIELDS.sort),
    ask: read(FIELDS.ask),
    ahead: read(FIELDS.ahead),
    history: read(FIELDS.history),
    shape: read(FIELDS.shape),
    predicted: read(FIELDS.predicted),
    simulator: {
      trace: read(SIMULATOR_FIELDS.trace),
      orders: read(SIMULATOR_FIELDS.orders),
      fills: read(SIMULATOR_FIELDS.fills),
      rules: read(SIMULATOR_FIELDS.rules),
      estimates: read(SIMULATOR_FIELDS.estimates),
      omegas: read(SIMULATOR_FIELDS.omegas),
      machine: read(SIMULATOR_FIELDS.machine),
      result: read(SIMULATOR_FIELDS.result),
    },
    whatIf: {
      policy: read(WHAT_IF_FIELDS.policy),
      backfill: read(WHAT_IF_FIELDS.backfill),
      placement: read(WHAT_IF_FIELDS.placement),
      drained: read(WHAT_IF_FIELDS.drained),
      added: read(WHAT_IF_FIELDS.added),
      limits: read(WHAT_IF_FIELDS.limits),
      first: read(WHAT_IF_FIELDS.first),
    },
  };
}

export function writeScheduling(page: SchedulingPage, write: <T>(field: Field<T>, value: T) => void): void {
  write(FIELDS.tab, page.tab);
  write(FIELDS.queue, page.queue);
  write(FIELDS.text, page.text);
  write(FIELDS.sort, page.sort);
  write(FIELDS.ask, page.ask);
  write(FIELDS.ahead, page.ahead);
  write(FIELDS.history, page.history);
  write(FIELDS.shape, page.shape);
  write(FIELDS.predicted, page.predicted);
  const { simulator } = page;
  write(SIMULATOR_FIELDS.trace, simulator.trace);
  write(SIMULATOR_FIELDS.orders, simulator.orders);
  write(SIMULATOR_FIELDS.fills, simulator.fills);
  write(SIMULATOR_FIELDS.rules, simulator.rules);
  write(SIMULATOR_FIELDS.estimates, simulator.estimates);
  write(SIMULATOR_FIELDS.omegas, simulator.omegas);
  write(SIMULATOR_FIELDS.machine, simulator.machine);
  write(SIMULATOR_FIELDS.result, simulator.result);
  const { whatIf } = page;
  write(WHAT_IF_FIELDS.policy, whatIf.policy);
  write(WHAT_IF_FIELDS.backfill, whatIf.backfill);
  write(WHAT_IF_FIELDS.placement, whatIf.placement);
  write(WHAT_IF_FIELDS.drained, whatIf.drained);
  write(WHAT_IF_FIELDS.added, whatIf.added);
  write(WHAT_IF_FIELDS.limits, whatIf.limits);
  write(WHAT_IF_FIELDS.first, whatIf.first);
}

export function isWhatIf(choice: WhatIfChoice): boolean {
  return Object.values(choice).some((value: string | readonly string[]) => value.length > 0);
}

export const changeScheduling =
  (changes: Partial<SchedulingPage>) =>
  (screen: Screen): Screen => ({ ...screen, scheduling: { ...screen.scheduling, ...changes } });

export const changeWhatIf =
  (changes: Partial<WhatIfChoice>) =>
  (screen: Screen): Screen =>
    changeScheduling({ whatIf: { ...screen.scheduling.whatIf, ...changes } })(screen);

/** Another choice drops the saved result, unless one is given. */
export const changeSimulator =
  (changes: Partial<SimulatorChoice>) =>
  (screen: Screen): Screen =>
    changeScheduling({ simulator: { ...screen.scheduling.simulator, result: "", ...changes } })(screen);

/** Opens the overview, arranged by requested resource type; the selection stays. */
export const showWaiting = (screen: Screen): Screen => ({
  ...screen,
  view: "overview",
  table: "picture",
  picture: "waiting-by-resource-type",
  layout: null,
  color: null,
});
