// The minute that the screen shows, for components and data hooks.

import { useContext, useSyncExternalStore } from "react";
import type { Moment } from "./time.ts";
import { ScreenContext } from "./use-screen.ts";

/** Null: the present; also where there is no screen at all. */
export function useMoment(): Moment {
  const store = useContext(ScreenContext);
  return useSyncExternalStore(store?.subscribe ?? noSubscription, () => store?.read().screen.at ?? null);
}

function noSubscription(): () => void {
  return () => {};
}
