// The time bar: the stored history as bars, a handle to drag to a past minute, and a player.

import { type KeyboardEvent, useEffect, useState } from "react";
import { HOUR_MS, MINUTE_MS } from "../../base/durations.ts";
import { formatCount } from "../../base/format.ts";
import { readStored, writeStored } from "../../base/storage.ts";
import { formatInstant } from "../../base/time.ts";
import { useTimeline } from "../../data/queries.ts";
import { useServices } from "../../data/services.ts";
import { useUnits } from "../../data/units.ts";
import { toMinute, travelTo } from "../../state/time.ts";
import { useMoment } from "../../state/use-moment.ts";
import { useScreenStore } from "../../state/use-screen.ts";
import { Button, IconButton } from "../../widgets/button.tsx";
import { useNow } from "../../widgets/clock-context.ts";
import styles from "./time-bar.module.css";
import { TimeTrack } from "./time-track.tsx";
import { SPEEDS, type SpeedName, usePlayer } from "./use-player.ts";

const RANGES = { "1 h": HOUR_MS, "6 h": 6 * HOUR_MS, "24 h": 24 * HOUR_MS, "7 d": 168 * HOUR_MS, all: null } as const;
type RangeName = keyof typeof RANGES;
const RANGE_NAMES = Object.keys(RANGES) as RangeName[];
const RANGE_KEY = "clusterscape.time-range";
const POINTS = 240;

export function TimeBar() {
  const at = useMoment();
  const now = useNow();
  const store = useScreenStore();
  const [range, setRange] = useRange();
  const timeline = useTimeline(RANGES[range], POINTS);
  const shown = useUnits();
  const version = shown.value?.snapshot.inventoryVersion ?? 0;
  // Versions of the past are its milliseconds and a code below one minute; those of the present never reach them.
  const shownAt = at !== null && version >= at && version < at + MINUTE_MS ? at : null;
  const endMs = toMinute(Math.max(now, timeline.value?.end ?? 0));
  const startMs = Math.min(timeline.value?.start ?? endMs - HOUR_MS, at ?? endMs);
  const player = usePlayer({ at, shownAt, hasFailed: shown.problem !== null, startMs: toMinute(startMs) + MINUTE_MS });
  useFutureCheck();

  const go = (to: number, step: "push" | "replace") => {
    const minute = Math.max(toMinute(startMs), to);
    store.change(travelTo(minute >= endMs ? null : minute), step);
  };
  const stepBy = (deltaMs: number) => {
    player.stop();
    go((store.read().screen.at ?? endMs) + deltaMs, store.read().screen.at === null ? "push" : "replace");
  };
  const onKeyDown = (event: Pick<KeyboardEvent, "key" | "shiftKey" | "preventDefault">) => {
    const deltaMs = event.shiftKey ? HOUR_MS : MINUTE_MS;
    if (event.key === "ArrowLeft") stepBy(-deltaMs);
    else if (event.key === "ArrowRight") stepBy(deltaMs);
    else if (event.key === "Home") go(startMs, at === null ? "push" : "replace");
    else if (event.key === "End") go(endMs, "replace");
    else return;
    event.preventDefault();
  };
  useArrowKeys(onKeyDown);
  return (
    <section className={styles.bar} aria-label="Time" data-past={at !== null || undefined}>
      <IconButton
        icon={player.isPlaying ? "pause" : "play"}
        label={player.isPlaying ? "Stop playing" : "Play the past"}
        onClick={player.isPlaying ? player.stop : player.play}
      />
      <output className={styles.moment}>{at === null ? "now" : formatInstant(at, now)}</output>
      <TimeTrack
        timeline={timeline.value}
        startMs={startMs}
        endMs={endMs}
        at={at}
        isBehind={at !== null && shownAt !== at}
        onMove={(to, isFirst) => {
          player.stop();
          go(to, isFirst ? "push" : "replace");
        }}
        onKeyDown={onKeyDown}
        describe={describeStep}
      />
      <Button className={styles.now} disabled={at === null} onClick={() => store.change(travelTo(null))}>
        Now
      </Button>
      <Choice
        label="Range of the time bar"
        value={range}
        options={RANGE_NAMES.map((name) => [name, name] as const)}
        onChange={setRange}
      />
      <Choice
        label="Playing speed"
        value={player.speed}
        options={(Object.keys(SPEEDS) as SpeedName[]).map((name) => [name, SPEEDS[name].title] as const)}
        onChange={player.choose}
      />
    </section>
  );
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, title: string])[];
  onChange(value: T): void;
}

function Choice<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  return (
    <select
      className={styles.choice}
      aria-label={label}
      data-tip={label}
      value={value}
      onChange={(event) => onChange(event.target.value as T)}
    >
      {options.map(([name, title]) => (
        <option key={name} value={name}>
          {title}
        </option>
      ))}
    </select>
  );
}

function useRange(): readonly [RangeName, (range: RangeName) => void] {
  const [range, setRange] = useState<RangeName>(
    () => RANGE_NAMES.find((name) => name === readStored(RANGE_KEY)) ?? "24 h",
  );
  return [
    range,
    (next) => {
      writeStored(RANGE_KEY, next);
      setRange(next);
    },
  ];
}

/** Nobody knows the future: a link that names it shows the present and says so. */
function useFutureCheck(): void {
  const at = useMoment();
  const { clock } = useServices();
  const store = useScreenStore();
  useEffect(() => {
    if (at === null || at <= clock.now()) return;
    store.change(travelTo(null), "replace");
    store.note(["The time in the link is in the future; the present is shown."]);
  }, [at, clock, store]);
}

/** Arrow keys belong to whatever is focused; where nothing is, they step through time. */
function useArrowKeys(onKeyDown: (event: globalThis.KeyboardEvent) => void): void {
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent) => {
      const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
      if (!hasModifier && event.key.startsWith("Arrow") && event.target === document.body) onKeyDown(event);
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [onKeyDown]);
}

interface Step {
  readonly allocated: number;
  readonly total: number;
  readonly waiting: number;
  readonly utilRatio: number | null;
}

function describeStep({ allocated, total, waiting, utilRatio }: Step): string {
  const used = utilRatio === null ? "" : ` · ${Math.round(utilRatio * 100)}\u00a0% used`;
  return `${formatCount(allocated)} of ${formatCount(total)} GPUs allocated${used} · ${formatCount(waiting)} waited for`;
}
