// What the server last said of itself over the live stream, and whether the line to it stands.

import type { Client, LiveVersion } from "../api/client.ts";
import type { Clock } from "../base/clock.ts";

export type Connection = "connecting" | "open" | "lost";

export interface LiveState {
  readonly connection: Connection;
  readonly version: LiveVersion | null;
  /** Counts what was received, so that those who failed know when it is worth trying again. */
  readonly heard: number;
}

export interface LiveStore {
  read(): LiveState;
  /** The line is held while anybody listens. */
  subscribe(listener: () => void): () => void;
  /** Opens the line anew, after signing in. */
  reopen(): void;
}

export function createLiveStore(client: Pick<Client, "listen">, clock: Clock): LiveStore {
  const listeners = new Set<() => void>();
  let state: LiveState = { connection: "connecting", version: null, heard: 0 };
  let stop: (() => void) | undefined;

  const tell = (next: LiveState) => {
    state = next;
    for (const listener of listeners) listener();
  };
  const open = () => {
    stop?.();
    stop = client.listen({
      onVersion(version) {
        clock.adjust(version.at);
        tell({ connection: "open", version, heard: state.heard + 1 });
      },
      onLost: () => tell({ ...state, connection: "lost" }),
    });
  };

  return {
    read: () => state,
    reopen: () => {
      if (stop) open();
    },
    subscribe(listener) {
      listeners.add(listener);
      if (!stop) open();
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
          stop?.();
          stop = undefined;
        }
      };
    },
  };
}
