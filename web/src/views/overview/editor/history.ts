// An undo history as pure functions. Bounded; knows nothing of the steps.

export interface History<T> {
  /** Oldest first. */
  readonly past: readonly T[];
  /** Next first. */
  readonly future: readonly T[];
}

export const NO_HISTORY: History<never> = { past: [], future: [] };

export const MAX_STEPS = 100;

/** `present`: what is about to be left by a new step. */
export function record<T>({ past }: History<T>, present: T): History<T> {
  return { past: [...past, present].slice(-MAX_STEPS), future: [] };
}

export interface Moved<T> {
  readonly history: History<T>;
  readonly present: T;
}

/** Null where there is nothing to undo. */
export function undo<T>({ past, future }: History<T>, present: T): Moved<T> | null {
  const before = past.at(-1);
  if (before === undefined) return null;
  return { history: { past: past.slice(0, -1), future: [present, ...future] }, present: before };
}

export function redo<T>({ past, future }: History<T>, present: T): Moved<T> | null {
  const [after, ...rest] = future;
  if (after === undefined) return null;
  return { history: { past: [...past, present].slice(-MAX_STEPS), future: rest }, present: after };
}
