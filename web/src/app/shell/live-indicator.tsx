// How live the page is: the age of the newest sample while the line stands, and on request where the data comes from.

import * as Popover from "@radix-ui/react-popover";
import { useState } from "react";
import { formatShortDuration } from "../../base/time.ts";
import type { LiveState } from "../../data/live-store.ts";
import { useCluster } from "../../data/queries.ts";
import { useLive } from "../../data/services.ts";
import { useNow } from "../../widgets/clock-context.ts";
import styles from "./live-indicator.module.css";
import { SourcesPanel } from "./sources-panel.tsx";

/** Six scrapes of the usual 15 s: no hiccup any more. */
const STALE_S = 90;

export type Liveness = "connecting" | "reconnecting" | "paused" | "waiting" | "stale" | "live";

export function judgeLiveness({ connection, version }: LiveState, nowMs: number): Liveness {
  if (connection === "connecting") return "connecting";
  if (connection === "lost" || version === null) return "reconnecting";
  if (version.paused !== null) return "paused";
  if (version.newest_sample_at === null) return "waiting";
  return nowMs - version.newest_sample_at > STALE_S * 1000 ? "stale" : "live";
}

const WORDS: Readonly<Record<Liveness, string>> = {
  connecting: "connecting",
  reconnecting: "reconnecting",
  paused: "paused",
  waiting: "no samples yet",
  stale: "stale",
  live: "live",
};

export function LiveIndicator() {
  const [isOpen, setOpen] = useState(false);
  const live = useLive();
  const now = useNow();
  const failing = useCluster().value?.failing_sources ?? 0;
  const liveness = judgeLiveness(live, now);
  const sampledAt = live.version?.newest_sample_at ?? null;
  const age = sampledAt === null ? null : formatShortDuration((now - sampledAt) / 1000);
  return (
    <Popover.Root open={isOpen} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <button type="button" className={styles.trigger} data-liveness={liveness}>
          <i aria-hidden="true" />
          <span>
            {WORDS[liveness]}
            {age !== null && liveness !== "connecting" && <span className={styles.age}> · {age} ago</span>}
          </span>
          {failing > 0 && <b data-tip={`${failing} failing`}>{failing}</b>}
        </button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          className={styles.panel}
          align="end"
          sideOffset={8}
          collisionPadding={8}
          aria-label="Where the data comes from"
        >
          <SourcesPanel />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
