// Whether the server wants to know who asks, and why the last attempt to say so failed.

import { useSyncExternalStore } from "react";

export interface Session {
  /** Why a provider did not let somebody in, as the server names it; null: nobody tried. */
  readonly failure: string | null;
  isNeeded(): boolean;
  /** Whether somebody was in before they had to say who they are. */
  hasEnded(): boolean;
  setNeeded(isNeeded: boolean, hasEnded?: boolean): void;
  subscribe(listener: () => void): () => void;
}

const FAILURE_KEY = "sign_in";

/** Reads from the link why signing in failed, and takes it out: it is said once. */
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
      // Many questions fail at once; the first knows what the page had been told before.
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
