// The time that the screen shows: the present, or a past minute. In a link UTC to the minute, `at=2026-11-15T08:41Z`.

import { MINUTE_MS } from "../base/durations.ts";
import type { Field } from "./fields.ts";
import type { Screen } from "./screen.ts";

/** A whole minute in Unix ms; null: the present, live. */
export type Moment = number | null;

const WRITTEN = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;

export const momentField: Field<Moment> = {
  key: "at",
  initial: null,
  parse([text = ""]) {
    // Some programs turn the plus sign of a link into a space.
    const [, minute, zone] = WRITTEN.exec(text.replace(" ", "+")) ?? [];
    const at = Date.parse(`${minute}${zone}`);
    return minute === undefined || !Number.isFinite(at) || at < 0 || !isRealDate(minute) ? undefined : at;
  },
  serialize: (at) => (at === null ? [] : [formatMoment(at)]),
};

/** Date.parse accepts 31 February as 3 March. */
function isRealDate(minute: string): boolean {
  return Number.isFinite(Date.parse(`${minute}Z`)) && new Date(`${minute}Z`).toISOString().startsWith(minute);
}

export function formatMoment(at: number): string {
  return `${new Date(toMinute(at)).toISOString().slice(0, 16)}Z`;
}

export function toMinute(ms: number): number {
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS;
}

/** To a past minute, or back to the present with null. */
export const travelTo =
  (at: Moment) =>
  (screen: Screen): Screen => ({ ...screen, at: at === null ? null : toMinute(at) });
