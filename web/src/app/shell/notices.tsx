// What the reader must know before believing the page: that the server is gone, that nothing is stored, that part of the
// link was left out. Said above everything, until mended or put away.

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

/** More than a heartbeat: a short break is not worth a line. */
const SILENCE_MS = 20_000;

export function listTroubles(
  { connection, version }: Pick<LiveState, "connection" | "version">,
  nowMs: number,
): readonly string[] {
  if (version === null) return [];
  const troubles: string[] = [];
  if (connection === "lost" && nowMs - version.at > SILENCE_MS) {
    troubles.push(
      `The server does not answer. The page shows what it said last, at ${formatExact(version.at)}, and goes on by itself when it is back.`,
    );
  }
  if (version.paused !== null) troubles.push(`Nothing new is stored. ${toSentence(version.paused)}`);
  return troubles;
}

export function Notices() {
  const link = useLinkNotices();
  const live = useLive();
  const now = useNow();
  const [putAway, setPutAway] = useState<readonly string[]>([]);
  const notices = [...listTroubles(live, now), ...link];
  const shown = notices.filter((notice) => !putAway.includes(notice));
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
      <IconButton icon="close" label="Put away" onClick={() => setPutAway([...putAway, ...shown])} />
    </div>
  );
}

/** Goes by itself, so it cannot be put away. */
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
