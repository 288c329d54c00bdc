// A time relative to now, with the exact time on hover.

import { formatAgo, formatExact } from "../base/time.ts";
import { useNow } from "./clock-context.ts";

export function RelativeTime({ at }: { at: number | null | undefined }) {
  const now = useNow();
  if (at === null || at === undefined) return <>{formatAgo(null, now)}</>;
  return (
    <time dateTime={new Date(at).toISOString()} data-tip={formatExact(at)}>
      {formatAgo(at, now)}
    </time>
  );
}
