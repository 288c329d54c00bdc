// The latest state from the live stream and the state of the connection. When the reader pauses, the page keeps the
// version of that moment. While the pointer is over the picture, updates are briefly delayed.

import type { Client, LiveVersion } from "../api/client.ts";
import type { Clock } from "../base/clock.ts";

export type Connection = "connecting" | "open" | "lost";

export interface LiveState {
  readonly connection: Connection;
  /** The newest version received. */
  readonly version: LiveVersion | null;
  /** The version to show: the newest, or the one at which the reader paused. */
  readonly followed: LiveVersion | null;
  /** Unix ms; null: not paused. */
  readonly pausedAt: number | null;
  /** Counts received versions, so that failed queries know when to retry. */
  readonly receivedCount: number;
}

export interface LiveStore {
  read(): LiveState;
  /** The connection is open while there are listeners. */
  subscribe(listener: () => void): () => void;
  /** Reopens the connection, after signing in. */
  reopen(): void;
  pause(): void;
  /** Resumes and catches up immediately. */
  resume(): void;
  /** The reader points at a square or drags. */
  touch(): void;
  /** Resolves when the pointer has rested for a second, or after a few seconds. */
  untilCalm(signal: AbortSignal): Promise<void>;
}

const CALM_MS = 1000;
const LONGEST_WAIT_MS = 4000;
const LOOK_EVERY_MS = 100;

export function createLiveStore(client: Pick<Client, "listen">, clock: Clock): LiveStore {
  const listeners = new Set<() => void>();
  let state: LiveState = { connection: "connecting", version: null, followed: null, pausedAt: null, receivedCount: 0 };
  let stop: (() => void) | undefined;
  let touchedAt = Number.NEGATIVE_INFINITY;

  const update = (next: LiveState) => {
    state = next;
    for (const listener of listeners) listener();
  };
  const open = () => {
    stop?.();
    stop = client.listen({
      onVersion(version) {
        clock.adjust(version.at);
        const followed = state.pausedAt === null ? version : state.followed;
        update({ ...state, connection: "open", version, followed, receivedCount: state.receivedCount + 1 });
      },
      onLost: () => update({ ...state, connection: "lost" }),
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
      if (state.pausedAt === null) update({ ...state, pausedAt: clock.now() });
    },
    resume: () => update({ ...state, followed: state.version, pausedAt: null }),
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
