// The usage page in a link: which period, of whom, and by what it is divided.

import { choiceField, type Field } from "./fields.ts";
import type { Screen } from "./screen.ts";

/** In the order in which the page offers them. */
export const USAGE_PARTS = ["project", "user", "partition", "gpu_model", "job_size", "qos", "end_state"] as const;
export type UsagePart = (typeof USAGE_PARTS)[number];

export interface UsagePage {
  /** As the server writes it, "2026-10"; empty: the current month. */
  readonly period: string;
  readonly part: UsagePart;
  /** Only of this project or user; empty: of all. */
  readonly project: string;
  readonly user: string;
}

const LONGEST_NAME = 256;
const PERIOD = /^[\dQW.-]{4,23}$/;

const periodField: Field<string> = {
  key: "period",
  initial: "",
  parse: ([text = ""]) => (PERIOD.test(text) ? text : undefined),
  serialize: (text) => (text === "" ? [] : [text]),
};
const partField = choiceField("usage", USAGE_PARTS, "project");
const projectField = nameField("usage_project");
const userField = nameField("usage_user");

function nameField(key: string): Field<string> {
  return {
    key,
    initial: "",
    parse: ([text = ""]) => (text.length <= LONGEST_NAME ? text : undefined),
    serialize: (text) => (text === "" ? [] : [text]),
  };
}

export const INITIAL_USAGE: UsagePage = { period: "", part: "project", project: "", user: "" };

export function parseUsage(read: <T>(field: Field<T>) => T): UsagePage {
  return { period: read(periodField), part: read(partField), project: read(projectField), user: read(userField) };
}

export function writeUsage(page: UsagePage, write: <T>(field: Field<T>, value: T) => void): void {
  write(periodField, page.period);
  write(partField, page.part);
  write(projectField, page.project);
  write(userField, page.user);
}

export const changeUsage =
  (changes: Partial<UsagePage>) =>
  (screen: Screen): Screen => ({ ...screen, usage: { ...screen.usage, ...changes } });
