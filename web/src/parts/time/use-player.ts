// Plays the past: each step waits until the previous one is shown and its time has passed; the next one is prefetched.

import { useEffect, useRef, useState } from "react";
import { MINUTE_MS } from "../../base/durations.ts";
import { useServices } from "../../data/services.ts";
import { usePrefetchUnits } from "../../data/units.ts";
import { type Moment, toMinute, travelTo } from "../../state/time.ts";
import { useChangeScreen } from "../../state/use-screen.ts";

export interface Speed {
  readonly title: string;
  readonly stepMs: number;
  readonly everyMs: number;
}

/** Two pictures a second at most: units need half a second to fly. */
export const SPEEDS = {
  "1m": { title: "1 min/s", stepMs: MINUTE_MS, everyMs: 1000 },
  "10m": { title: "10 min/s", stepMs: 5 * MINUTE_MS, everyMs: 500 },
  "1h": { title: "1 h/s", stepMs: 30 * MINUTE_MS, everyMs: 500 },
} as const satisfies Readonly<Record<string, Speed>>;
export type SpeedName = keyof typeof SPEEDS;

export interface Player {
  readonly isPlaying: boolean;
  readonly speed: SpeedName;
  choose(speed: SpeedName): void;
  play(): void;
  stop(): void;
}

interface Played {
  readonly at: Moment;
  /** The minute that the picture on the screen is of. */
  readonly shownAt: Moment;
  readonly hasFailed: boolean;
  /** Where to begin from the present. */
  readonly startMs: number;
}

export function usePlayer({ at, shownAt, hasFailed, startMs }: Played): Player {
  const { clock } = useServices();
  const change = useChangeScreen();
  const prefetch = usePrefetchUnits();
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<SpeedName>("10m");
  const steppedAt = useRef(0);
  const { stepMs, everyMs } = SPEEDS[speed];

  useEffect(() => {
    if (!isPlaying || at === null || shownAt !== at) return;
    const next = at + stepMs;
    const isOver = next >= toMinute(clock.now());
    if (!isOver) prefetch(next);
    const step = () => {
      steppedAt.current = performance.now();
      if (isOver) setPlaying(false);
      change(travelTo(isOver ? null : next), "replace");
    };
    const timer = setTimeout(step, Math.max(0, everyMs - (performance.now() - steppedAt.current)));
    return () => clearTimeout(timer);
  }, [isPlaying, at, shownAt, stepMs, everyMs, clock, change, prefetch]);

  useEffect(() => {
    if (hasFailed) setPlaying(false);
  }, [hasFailed]);

  return {
    isPlaying: isPlaying && at !== null,
    speed,
    choose: setSpeed,
    play() {
      if (at === null) change(travelTo(startMs));
      steppedAt.current = performance.now();
      setPlaying(true);
    },
    stop: () => setPlaying(false),
  };
}
