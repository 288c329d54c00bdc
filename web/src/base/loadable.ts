// What a component may know of data that comes from elsewhere: the value, what went wrong, how to try again.

import type { Problem } from "./problem.ts";

export interface Loadable<T> {
  /** The newest value there is, also while a newer one is on its way or failed to come. */
  readonly value: T | undefined;
  readonly problem: Problem | null;
  /** When `value` was received, Unix ms; 0 where there is none. */
  readonly receivedAt: number;
  retry(): void;
}

export function mapLoadable<T, U>(source: Loadable<T>, change: (value: T) => U): Loadable<U> {
  return { ...source, value: source.value === undefined ? undefined : change(source.value) };
}
