// Data that is loaded from elsewhere, for components: the value, the problem, and a way to retry.

import type { Problem } from "./problem.ts";

export interface Loadable<T> {
  /** The newest value, also while a newer one is loading or has failed to load. */
  readonly value: T | undefined;
  readonly problem: Problem | null;
  /** When `value` was received, Unix ms; 0: never. */
  readonly receivedAt: number;
  retry(): void;
}

export function mapLoadable<T, U>(source: Loadable<T>, change: (value: T) => U): Loadable<U> {
  return { ...source, value: source.value === undefined ? undefined : change(source.value) };
}
