// Who hangs in a distributed run: the verdict, the chain of waits, ranks by process groups, and stacks of equal ranks.

import { type ReactNode, useMemo, useState } from "react";
import type { HangReport, HangVerdict, StackGroup } from "../../../api/generated.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { formatDuration, formatExact } from "../../../base/time.ts";
import { useNow } from "../../../widgets/clock-context.ts";
import { Facts } from "../../../widgets/facts.tsx";
import { Tag, type Tone } from "../../../widgets/tag.tsx";
import styles from "./hang.module.css";
import { formatRanks, layerStalls, type WaitingKind } from "./rank-layout.ts";
import { countState, RankPicture, STATE_COLORS, STATE_TITLES, STATES } from "./rank-picture.tsx";

const MOST_STACKS = 12;
const MOST_SHOWN_FRAMES = 6;
const CERTAINTY_TONES: Readonly<Record<string, Tone>> = { certain: "ok", likely: "accent", possible: "warn" };

interface HangReportViewProps {
  readonly report: HangReport;
  readonly hosts?: readonly string[];
  readonly hostsWithoutLook?: readonly string[];
  /** Unix ms; null: it still hangs. */
  readonly wentOnAt?: number | null;
}

export function HangReportView({ report, hosts = [], hostsWithoutLook = [], wentOnAt = null }: HangReportViewProps) {
  const { verdict } = report;
  const [pinned, setPinned] = useState<readonly number[] | null>(null);
  const highlighted = useMemo(() => (pinned === null ? null : new Set(pinned)), [pinned]);
  const toggle = (ranks: readonly number[]) => setPinned((last) => (last === ranks ? null : ranks));
  return (
    <div className={styles.report}>
      <Verdict report={report} wentOnAt={wentOnAt} hosts={hosts} hostsWithoutLook={hostsWithoutLook} />
      {(verdict.stalled ?? []).length > 0 && <Chain verdict={verdict} pinned={pinned} onToggle={toggle} />}
      {report.rows.length > 0 && (
        <Section title="Ranks by process groups" note="Numbers are calls made. Outlined: the ranks of the verdict.">
          <RankPicture report={report} highlighted={highlighted} />
          <Legend report={report} />
        </Section>
      )}
      <Stacks stacks={verdict.stacks ?? []} verdict={verdict} pinned={pinned} onToggle={toggle} />
    </div>
  );
}

function Section({ title, note, children }: { title: string; note?: string; children: ReactNode }) {
  return (
    <section className={styles.section} aria-label={title}>
      <h2>
        {title} {note && <small>{note}</small>}
      </h2>
      {children}
    </section>
  );
}

function Verdict({ report, wentOnAt, hosts, hostsWithoutLook }: Required<HangReportViewProps>) {
  const { verdict, sources, looks } = report;
  const certainty = verdict.certainty ?? "possible";
  const alternatives = verdict.alternatives ?? [];
  const notes = [
    ...(hostsWithoutLook.length > 0
      ? [
          `No look from ${formatPlural(hostsWithoutLook.length, "host")} yet: ${hostsWithoutLook.slice(0, 4).join(", ")}.`,
        ]
      : []),
    ...(verdict.notes ?? []),
  ];
  return (
    <header className={styles.verdict} data-kind={verdict.kind}>
      <h1>
        {verdict.title} <Tag tone={CERTAINTY_TONES[certainty] ?? "neutral"}>{certainty}</Tag>
        {wentOnAt !== null && <Tag tone="ok">went on</Tag>}
      </h1>
      <p>{verdict.reason}</p>
      <Facts
        facts={[
          { name: "Where", value: verdict.place ? <code>{verdict.place}</code> : null },
          { name: "Since", value: <Since verdict={verdict} wentOnAt={wentOnAt} /> },
          { name: "Cost", value: formatCost(verdict) },
          { name: "Evidence", value: <Lines lines={verdict.evidence ?? []} /> },
          {
            name: "Or else",
            value: alternatives.length > 0 ? `${alternatives.join(" or ")}: the sources cannot tell these apart` : null,
          },
          { name: "Do", value: verdict.advice || null },
          {
            name: "Read",
            value: [
              formatPlural(looks, "look"),
              hosts.length > 1 ? `${formatCount(hosts.length)} hosts` : null,
              ...sources.map(({ name, count }) => `${name}: ${formatCount(count)}`),
            ]
              .filter(Boolean)
              .join(" · "),
          },
        ]}
      />
      {notes.map((note) => (
        <p key={note} className={styles.note}>
          {note}
        </p>
      ))}
    </header>
  );
}

function Lines({ lines }: { lines: readonly string[] }) {
  return (
    <>
      {lines.map((line) => (
        <span key={line} className={styles.line}>
          {line}
        </span>
      ))}
    </>
  );
}

function Since({ verdict, wentOnAt }: { verdict: HangVerdict; wentOnAt: number | null }) {
  const now = useNow();
  if (!verdict.since_ms) return null;
  return (
    <>
      {formatExact(verdict.since_ms)}, {formatDuration(((wentOnAt ?? now) - verdict.since_ms) / 1000)}
    </>
  );
}

export function formatCost({ held_gpus, kind }: HangVerdict): string | null {
  if (!held_gpus || kind === "slow") return null;
  return `${formatCount(held_gpus)} GPU-hours per hour`;
}

interface PinProps {
  readonly pinned: readonly number[] | null;
  onToggle(ranks: readonly number[]): void;
}

/** Causes left, victims right: each column waits for the one before it. */
function Chain({ verdict, pinned, onToggle }: PinProps & { readonly verdict: HangVerdict }) {
  const layers = useMemo(() => layerStalls(verdict.stalled ?? []), [verdict.stalled]);
  const ranks = verdict.ranks;
  return (
    <Section title="Chain of waits">
      <ol className={styles.chain}>
        {ranks.length > 0 && (
          <li>
            <small>{verdict.kind === "slow" ? "late" : "first cause"}</small>
            <button
              type="button"
              className={styles.cause}
              aria-pressed={pinned === ranks}
              onClick={() => onToggle(ranks)}
            >
              <b>
                {ranks.length === 1 ? "Rank" : "Ranks"} {formatRanks(ranks)}
              </b>
              <span>{verdict.doing ?? verdict.kind}</span>
            </button>
          </li>
        )}
        {layers.map((kinds, depth) => (
          <li key={kinds.map(({ key }) => key).join()}>
            <small>{depth === 0 ? "wait for it" : "wait for these"}</small>
            {kinds.map((kind) => (
              <Waiting key={kind.key} kind={kind} pinned={pinned} onToggle={onToggle} />
            ))}
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Waiting({ kind, pinned, onToggle }: PinProps & { readonly kind: WaitingKind }) {
  return (
    <button
      type="button"
      className={styles.waiting}
      aria-pressed={pinned === kind.waiting}
      onClick={() => onToggle(kind.waiting)}
    >
      <b>
        {kind.name}
        {kind.groups > 1 && `, ${formatCount(kind.groups)} groups`}
      </b>
      <span>
        {kind.call}: {formatPlural(kind.waiting.length, "rank")} ({formatRanks(kind.waiting, 3)})
        {kind.missing.length > 0 && ` for ${formatRanks(kind.missing, 3)}`}
      </span>
    </button>
  );
}

function Legend({ report }: { report: HangReport }) {
  return (
    <ul className={styles.legend} aria-label="States of ranks">
      {STATES.map((state) => ({ state, count: countState(report, state) }))
        .filter(({ count }) => count > 0)
        .map(({ state, count }) => (
          <li key={state}>
            <i data-swatch={true} data-state={state} style={{ color: STATE_COLORS[state] }} />
            {STATE_TITLES[state]} <small>{formatPlural(count, "rank")}</small>
          </li>
        ))}
    </ul>
  );
}

function Stacks({
  stacks,
  verdict,
  pinned,
  onToggle,
}: PinProps & { stacks: readonly StackGroup[]; verdict: HangVerdict }) {
  const guilty = useMemo(() => new Set(verdict.ranks), [verdict.ranks]);
  const total = stacks.reduce((sum, { ranks }) => sum + ranks.length, 0);
  const ordered = stacks.toSorted(
    (a, b) => Number(b.ranks.some((rank) => guilty.has(rank))) - Number(a.ranks.some((rank) => guilty.has(rank))),
  );
  if (stacks.length === 0) return null;
  return (
    <Section title="Stacks" note="Ranks with equal stacks together, innermost frame first.">
      <div className={styles.stacks}>
        {ordered.slice(0, MOST_STACKS).map((stack) => (
          <button
            key={stack.ranks[0]}
            type="button"
            className={styles.stack}
            data-guilty={stack.ranks.some((rank) => guilty.has(rank)) || undefined}
            aria-pressed={pinned === stack.ranks}
            onClick={() => onToggle(stack.ranks)}
          >
            <b>
              {stack.ranks.length === 1 ? "Rank" : "Ranks"} {formatRanks(stack.ranks)}
              <small>
                {formatCount(stack.ranks.length)} of {formatCount(total)}
              </small>
            </b>
            <i style={{ width: `${(100 * stack.ranks.length) / total}%` }} />
            {stack.frames.slice(0, MOST_SHOWN_FRAMES).map((frame, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: frames are identified by their place
              <code key={at}>{frame}</code>
            ))}
            {stack.frames.length > MOST_SHOWN_FRAMES && (
              <small>and {formatPlural(stack.frames.length - MOST_SHOWN_FRAMES, "more frame")}</small>
            )}
          </button>
        ))}
      </div>
      {ordered.length > MOST_STACKS && (
        <p className={styles.note}>and {formatPlural(ordered.length - MOST_STACKS, "more group")} of equal stacks</p>
      )}
    </Section>
  );
}
