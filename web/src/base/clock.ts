// The page's clock: the server's time, reported to listeners once a second. Runs no timer without listeners.

export interface Clock {
  /** The server's time, Unix ms; the local time until the first response. */
  now(): number;
  /** Sets the server's time from a response that was just received. */
  adjust(serverNowMs: number): void;
  subscribe(listener: () => void): () => void;
}

/** Smaller differences are network delay, not clock skew. */
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
