// The page's one clock: the server's time, told once a second to those who listen. Holds no timer while nobody does.

export interface Clock {
  /** Unix ms on the server, as far as known. */
  now(): number;
  /** Takes over the server's time from an answer that was just received. */
  adjust(serverNowMs: number): void;
  subscribe(listener: () => void): () => void;
}

/** Below this a difference is the network's delay, not a wrong clock. */
const TOLERATED_SKEW_MS = 2000;

export function createClock(localNow: () => number, tickMs = 1000): Clock {
  const listeners = new Set<() => void>();
  let offsetMs = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  let current = localNow();

  const tick = () => {
    current = localNow() + offsetMs;
    for (const listener of listeners) listener();
  };

  return {
    now: () => (timer === undefined ? localNow() + offsetMs : current),
    adjust(serverNowMs) {
      const skewMs = serverNowMs - localNow();
      offsetMs = Math.abs(skewMs) > TOLERATED_SKEW_MS ? skewMs : 0;
    },
    subscribe(listener) {
      listeners.add(listener);
      if (timer === undefined) {
        current = localNow() + offsetMs;
        timer = setInterval(tick, tickMs);
      }
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
          clearInterval(timer);
          timer = undefined;
        }
      };
    },
  };
}
