// Whether sign-in is needed, and why the last attempt failed.

import { useSyncExternalStore } from "react";

export interface Session {
  /** The server's code for a failed sign-in with a provider; null: no attempt. */
  readonly failure: string | null;
  isNeeded(): boolean;
  /** Whether a session existed and has expired. */
  hasEnded(): boolean;
  setNeeded(isNeeded: boolean, hasEnded?: boolean): void;
  subscribe(listener: () => void): () => void;
}

const FAILURE_KEY = "sign_in";

/** Reads the reason for a failed sign-in from the link and removes it, so that it is shown once. */
export function takeFailure({ location, history }: Pick<Window, "location" | "history">): string | null {
  const parameters = new URLSearchParams(location.search);
  const failure = parameters.get(FAILURE_KEY);
  if (failure === null) return null;
  parameters.delete(FAILURE_KEY);
  const query = parameters.toString();
  history.replaceState(null, "", query ? `${location.pathname}?${query}` : location.pathname);
  return failure;
}

export function createSession(failure: string | null = null): Session {
  const listeners = new Set<() => void>();
  let needed = false;
  let ended = false;
  return {
    failure,
    isNeeded: () => needed,
    hasEnded: () => ended,
    setNeeded(isNeeded, hasEnded = false) {
      // Many requests fail at the same time; the first one knows whether there was a session.
      ended = isNeeded && (hasEnded || (needed && ended));
      needed = isNeeded;
      for (const listener of listeners) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useSignInNeeded(session: Session): boolean {
  return useSyncExternalStore(session.subscribe, session.isNeeded);
}
