// Warnings above every view: the server is unreachable, nothing is stored, or part of the link was ignored. Shown until
// resolved or dismissed.

import { useState, useSyncExternalStore } from "react";
import { toSentence } from "../../base/problem.ts";
import { formatExact } from "../../base/time.ts";
import { readWarmUp, subscribeWarmUp } from "../../base/warm-up.ts";
import type { LiveState } from "../../data/live-store.ts";
import { useLive } from "../../data/services.ts";
import { useLinkNotices } from "../../state/use-screen.ts";
import { IconButton } from "../../widgets/button.tsx";
import { useNow } from "../../widgets/clock-context.ts";
import { Icon } from "../../widgets/icon.tsx";
import styles from "./notices.module.css";

/** Longer than a heartbeat interval: short interruptions are not shown. */
const SILENCE_MS = 20_000;

export function listWarnings(
  { connection, version }: Pick<LiveState, "connection" | "version">,
  nowMs: number,
): readonly string[] {
  if (version === null) return [];
  const warnings: string[] = [];
  if (connection === "lost" && nowMs - version.at > SILENCE_MS) {
    warnings.push(
      `The server is not responding. The page shows the data of ${formatExact(version.at)} and reconnects automatically.`,
    );
  }
  if (version.paused !== null) warnings.push(`No new data is stored. ${toSentence(version.paused)}`);
  return warnings;
}

export function Notices() {
  const link = useLinkNotices();
  const live = useLive();
  const now = useNow();
  const [dismissed, setDismissed] = useState<readonly string[]>([]);
  const notices = [...listWarnings(live, now), ...link];
  const shown = notices.filter((notice) => !dismissed.includes(notice));
  const warmUp = useSyncExternalStore(subscribeWarmUp, readWarmUp);
  if (shown.length === 0) return warmUp === null ? null : <WarmingUp message={warmUp} />;
  return (
    <div className={styles.notices} role="status">
      <Icon name="alert" size={14} />
      <ul>
        {shown.map((notice) => (
          <li key={notice}>{notice}</li>
        ))}
      </ul>
      <IconButton icon="close" label="Dismiss" onClick={() => setDismissed([...dismissed, ...shown])} />
    </div>
  );
}

/** Disappears by itself, so it cannot be dismissed. */
function WarmingUp({ message }: { message: string }) {
  return (
    <div className={styles.notices} role="status">
      <Icon name="recent" size={14} />
      <ul>
        <li>{toSentence(message)}</li>
      </ul>
    </div>
  );
}
