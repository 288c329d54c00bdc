// Whether the server wants to know who asks.

import { useSyncExternalStore } from "react";

export interface Session {
  isNeeded(): boolean;
  setNeeded(isNeeded: boolean): void;
  subscribe(listener: () => void): () => void;
}

export function createSession(): Session {
  const listeners = new Set<() => void>();
  let needed = false;
  return {
    isNeeded: () => needed,
    setNeeded(isNeeded) {
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
