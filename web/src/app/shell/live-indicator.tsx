// Whether the page is live: the age of the newest sample, or that it is paused, or that it shows a past minute; and a
// panel of the data sources.

import * as Popover from "@radix-ui/react-popover";
import { useEffect, useState } from "react";
import { formatInstant, formatShortDuration } from "../../base/time.ts";
import type { LiveState } from "../../data/live-store.ts";
import { useCluster } from "../../data/queries.ts";
import { useLive, useServices } from "../../data/services.ts";
import type { ViewName } from "../../state/screen.ts";
import { travelTo } from "../../state/time.ts";
import { useMoment } from "../../state/use-moment.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { IconButton } from "../../widgets/button.tsx";
import { useNow } from "../../widgets/clock-context.ts";
import { PopupContent } from "../../widgets/popup.tsx";
import styles from "./live-indicator.module.css";
import { SourcesPanel } from "./sources-panel.tsx";

/** Six scrapes at the usual 15 s. */
const STALE_S = 90;

export type Liveness = "connecting" | "reconnecting" | "paused" | "waiting" | "stale" | "live";

export function judgeLiveness(
  { connection, version }: Pick<LiveState, "connection" | "version">,
  nowMs: number,
): Liveness {
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

/** Live, paused, or in the past, with a button to return. */
export function LiveIndicator() {
  const moment = useMoment();
  const { pausedAt } = useLive();
  usePauseKey();
  return (
    <div className={styles.live}>
      {moment !== null ? <PastNotice at={moment} /> : <PauseButton pausedAt={pausedAt} />}
      <SourcesButton />
    </div>
  );
}

/** Views that can show a past minute; the others always show the present. */
const OF_THE_PAST: readonly ViewName[] = ["overview", "rules", "diagnostics"];

function PastNotice({ at }: { at: number }) {
  const change = useChangeScreen();
  const now = useNow();
  const isHere = OF_THE_PAST.includes(useScreen().view);
  return (
    <button
      type="button"
      className={styles.past}
      data-tip={
        isHere ? undefined : "This view always shows the present. Overview, Rules and Diagnostics show that time."
      }
      onClick={() => change(travelTo(null))}
    >
      {isHere ? "past" : "past elsewhere"}: {formatInstant(at, now)} — <b>back to now</b>
    </button>
  );
}

function PauseButton({ pausedAt }: { pausedAt: number | null }) {
  const { live } = useServices();
  const now = useNow();
  if (pausedAt === null) return <IconButton icon="pause" label="Pause live updates (P)" onClick={live.pause} />;
  return (
    <button type="button" className={styles.past} data-tip="Resume live updates (P)" onClick={live.resume}>
      paused for {formatShortDuration((now - pausedAt) / 1000)} — <b>resume</b>
    </button>
  );
}

function usePauseKey(): void {
  const { live } = useServices();
  useEffect(() => {
    const toggle = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest("input, textarea, select, [role=dialog]");
      if (event.key.toLowerCase() !== "p" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      if (live.read().pausedAt === null) live.pause();
      else live.resume();
    };
    document.addEventListener("keydown", toggle);
    return () => document.removeEventListener("keydown", toggle);
  }, [live]);
}

function SourcesButton() {
  const [isOpen, setOpen] = useState(false);
  const live = useLive();
  const now = useNow();
  const cluster = useCluster().value;
  const failing = cluster?.failing_sources ?? 0;
  const questions = cluster?.open_questions ?? 0;
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
          {questions > 0 && (
            <b className={styles.questions} data-tip={`${questions} unresolved node names`}>
              ?
            </b>
          )}
        </button>
      </Popover.Trigger>
      <PopupContent className={styles.panel} align="end" aria-label="Data sources">
        <SourcesPanel />
      </PopupContent>
    </Popover.Root>
  );
}
