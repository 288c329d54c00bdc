// Lengths of time, in the unit that each name ends with. Defined once; `durations.test.ts` checks it.

export const MINUTE_S = 60;
export const HOUR_S = 60 * MINUTE_S;
export const DAY_S = 24 * HOUR_S;

export const SECOND_MS = 1000;
export const MINUTE_MS = SECOND_MS * MINUTE_S;
export const HOUR_MS = SECOND_MS * HOUR_S;
export const DAY_MS = SECOND_MS * DAY_S;
export const WEEK_MS = 7 * DAY_MS;
