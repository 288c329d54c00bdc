// A clock for the time that the screen shows: it stands still in the past and while paused, so that ages and waits are
// those of that time.

import { useMemo } from "react";
import type { Clock } from "../../base/clock.ts";
import { useLive, useServices } from "../../data/services.ts";
import { useMoment } from "../../state/use-moment.ts";

export function useShownClock(): Clock {
  const { clock } = useServices();
  const { pausedAt } = useLive();
  const moment = useMoment();
  const still = moment ?? pausedAt;
  return useMemo(
    () => (still === null ? clock : { now: () => still, adjust: () => {}, subscribe: () => () => {} }),
    [clock, still],
  );
}
