// The tour of the page in five steps. The page stays usable meanwhile, and the tour can be left at any time.

import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { readStored, writeStored } from "../../base/storage.ts";
import { useWorkloads } from "../../data/queries.ts";
import { useWithRules } from "../../data/rules.ts";
import { useUnits } from "../../data/units.ts";
import { findBroken, orderWorkloads } from "../../data/worth-diagnosing.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button, IconButton } from "../../widgets/button.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { type Box, placeCard } from "./place.ts";
import { TOUR, type TourExamples } from "./steps.ts";
import styles from "./tour.module.css";

const SEEN = "clusterscape.tour";
/** How often the target is looked up: views load and panels open meanwhile. */
const LOOK_MS = 150;

/** The button that starts the tour; with a label until this browser has seen it. */
export function TourButton() {
  const [isOpen, setOpen] = useState(false);
  const [isSeen, setSeen] = useState(() => readStored(SEEN) !== null);
  const open = () => {
    writeStored(SEEN, "seen");
    setSeen(true);
    setOpen(true);
  };
  return (
    <>
      {isSeen ? (
        <IconButton icon="help" label="Tour of the page" onClick={open} />
      ) : (
        <Button className={styles.invitation} aria-label="Take the tour" onClick={open}>
          <Icon name="help" />
          <span>Take the tour</span>
        </Button>
      )}
      {isOpen && <Tour onEnd={() => setOpen(false)} />}
    </>
  );
}

function Tour({ onEnd }: { onEnd: () => void }) {
  const [at, setAt] = useState(0);
  const examples = useExamples();
  const change = useChangeScreen();
  const { running, waiting } = examples;
  useEffect(() => TOUR[at] && change(TOUR[at].open({ running, waiting })), [at, running, waiting, change]);
  const step = TOUR[at];
  if (step === undefined) return null;
  return createPortal(
    <Card
      key={at}
      places={step.places}
      title={step.title}
      text={step.text}
      at={at}
      onGo={(to) => (to < TOUR.length ? setAt(to) : onEnd())}
      onEnd={onEnd}
    />,
    document.body,
  );
}

function useExamples(): TourExamples {
  const running = useWorkloads(["running"], true).value?.workloads ?? [];
  const waiting = useWorkloads(["waiting"], true).value?.workloads ?? [];
  const units = useWithRules(useUnits().value);
  const [candidate] = orderWorkloads(running, findBroken(units));
  const [oldest] = [...waiting].sort((a, b) => (a.submitted_at ?? Infinity) - (b.submitted_at ?? Infinity));
  // The examples stay the same while workloads start and end.
  const chosen = useRef<TourExamples>({ running: null, waiting: null });
  chosen.current = {
    running: chosen.current.running ?? (units?.rules ? candidate?.workload : null) ?? null,
    waiting: chosen.current.waiting ?? oldest?.workload ?? null,
  };
  return chosen.current;
}

interface CardProps {
  readonly places: readonly string[];
  readonly title: string;
  readonly text: string;
  readonly at: number;
  readonly onGo: (step: number) => void;
  readonly onEnd: () => void;
}

function Card({ places, title, text, at, onGo, onEnd }: CardProps) {
  const card = useRef<HTMLDivElement>(null);
  const target = useTarget(places);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    if (card.current) setSize({ width: card.current.offsetWidth, height: card.current.offsetHeight });
  }, []);
  useEffect(() => card.current?.querySelector<HTMLElement>("[data-next]")?.focus(), []);
  const screen = { width: window.innerWidth, height: window.innerHeight };
  const middle = { left: screen.width / 2, top: screen.height / 3, width: 0, height: 0 };
  const { left, top } = placeCard(target ?? middle, size, screen);
  const isLast = at === TOUR.length - 1;
  return (
    <>
      {target && <div className={styles.ring} style={{ ...target }} />}
      <div
        ref={card}
        role="dialog"
        aria-label={`Tour, step ${at + 1} of ${TOUR.length}: ${title}`}
        className={styles.card}
        style={{ left, top }}
        onKeyDown={(event) => event.key === "Escape" && onEnd()}
      >
        <IconButton className={styles.close} icon="close" label="End the tour" onClick={onEnd} />
        <b>{title}</b>
        <p>{text}</p>
        <footer>
          <ol aria-hidden="true">
            {TOUR.map((step, index) => (
              <li key={step.title} data-current={index === at || undefined} />
            ))}
          </ol>
          {at > 0 && <Button onClick={() => onGo(at - 1)}>Back</Button>}
          <Button look="primary" data-next onClick={() => onGo(at + 1)}>
            {isLast ? "Done" : "Next"}
          </Button>
        </footer>
      </div>
    </>
  );
}

/** The box of the first of these elements that is on the page, updated as the page changes; null: none. */
function useTarget(places: readonly string[]): Box | null {
  const [box, setBox] = useState<Box | null>(null);
  useEffect(() => {
    const look = () => {
      // Elements that are hidden in a narrow window have no size.
      const rect = places
        .map((place) => document.querySelector(place)?.getBoundingClientRect())
        .find((place) => place !== undefined && place.width > 0);
      setBox((previous) => (rect && isSame(previous, rect) ? previous : rect ? toBox(rect) : null));
    };
    look();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [places]);
  return box;
}

function toBox({ left, top, width, height }: Box): Box {
  return { left, top, width, height };
}

function isSame(a: Box | null, b: Box): boolean {
  return a !== null && a.left === b.left && a.top === b.top && a.width === b.width && a.height === b.height;
}
