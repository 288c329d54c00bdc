// The time that the screen is of, as a clock: it stands still in the past and while the reader has paused. Ages and waits
// shown under it are those of then.

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
