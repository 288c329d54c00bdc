// What the server last said of itself over the live stream, and whether the line to it stands. The reader may pause: then
// the page goes on showing the version of that moment. While the pointer rests on the picture, changes wait a little.

import type { Client, LiveVersion } from "../api/client.ts";
import type { Clock } from "../base/clock.ts";

export type Connection = "connecting" | "open" | "lost";

export interface LiveState {
  readonly connection: Connection;
  /** The newest that was heard of. */
  readonly version: LiveVersion | null;
  /** The one to show: the newest, or that of the moment the reader paused at. */
  readonly followed: LiveVersion | null;
  /** Unix ms; null while the page follows the server. */
  readonly pausedAt: number | null;
  /** Counts what was received, so that those who failed know when it is worth trying again. */
  readonly heard: number;
}

export interface LiveStore {
  read(): LiveState;
  /** The line is held while anybody listens. */
  subscribe(listener: () => void): () => void;
  /** Opens the line anew, after signing in. */
  reopen(): void;
  pause(): void;
  /** Follows again, and catches up at once. */
  resume(): void;
  /** Somebody is pointing at a square or dragging. */
  touch(): void;
  /** Resolves when nobody has pointed for a second, at the latest after some. */
  untilCalm(signal: AbortSignal): Promise<void>;
}

const CALM_MS = 1000;
const LONGEST_WAIT_MS = 4000;
const LOOK_EVERY_MS = 100;

export function createLiveStore(client: Pick<Client, "listen">, clock: Clock): LiveStore {
  const listeners = new Set<() => void>();
  let state: LiveState = { connection: "connecting", version: null, followed: null, pausedAt: null, heard: 0 };
  let stop: (() => void) | undefined;
  let touchedAt = Number.NEGATIVE_INFINITY;

  const tell = (next: LiveState) => {
    state = next;
    for (const listener of listeners) listener();
  };
  const open = () => {
    stop?.();
    stop = client.listen({
      onVersion(version) {
        clock.adjust(version.at);
        const followed = state.pausedAt === null ? version : state.followed;
        tell({ ...state, connection: "open", version, followed, heard: state.heard + 1 });
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
    pause: () => {
      if (state.pausedAt === null) tell({ ...state, pausedAt: clock.now() });
    },
    resume: () => tell({ ...state, followed: state.version, pausedAt: null }),
    touch: () => {
      touchedAt = performance.now();
    },
    async untilCalm(signal) {
      const giveUpAt = performance.now() + LONGEST_WAIT_MS;
      while (!signal.aborted && performance.now() < Math.min(giveUpAt, touchedAt + CALM_MS)) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    },
  };
}
