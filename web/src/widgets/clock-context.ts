// The page's clock for components: the time now, once a second for those who show it.

import { createContext, useContext, useSyncExternalStore } from "react";
import { type Clock, createClock } from "../base/clock.ts";

export const ClockContext = createContext<Clock>(createClock(Date.now));

/** Unix ms; renders again every second. */
export function useNow(): number {
  const clock = useContext(ClockContext);
  return useSyncExternalStore(clock.subscribe, clock.now);
}
