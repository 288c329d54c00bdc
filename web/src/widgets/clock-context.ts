// The page's clock for components: the current time, updated once a second.

import { createContext, useContext, useSyncExternalStore } from "react";
import { type Clock, createClock } from "../base/clock.ts";

export const ClockContext = createContext<Clock>(createClock(Date.now));

/** Unix ms; renders again every second. */
export function useNow(): number {
  const clock = useContext(ClockContext);
  return useSyncExternalStore(clock.subscribe, clock.now);
}
