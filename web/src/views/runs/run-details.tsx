// Details of a run: state, cost, times, params, results, the command that repeats it, and problems.

import type { ReactNode } from "react";
import type { RunAnswer, RunRow } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { useOwns } from "../../data/access.ts";
import { useRun, useRunRemoval } from "../../data/runs.ts";
import { HangButton } from "../../parts/hang/hang-button.tsx";
import { TraceButton } from "../../parts/traces/trace-button.tsx";
import { diagnose } from "../../state/diagnostics.ts";
import { closeRun, forgetRun } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button, IconButton } from "../../widgets/button.tsx";
import { ConfirmDialog } from "../../widgets/confirm-dialog.tsx";
import { Facts } from "../../widgets/facts.tsx";
import { Frame } from "../../widgets/frame.tsx";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import { Tag, type Tone } from "../../widgets/tag.tsx";
import styles from "./details.module.css";
import { nameRun } from "./groups.ts";
import { formatNumber, listQuantities } from "./quantities.ts";
import { formatSeconds, listEnvironment, listProblems, unitAfter } from "./run-facts.ts";

export function RunDetails({ run }: { run: string }) {
  const answer = useRun(run);
  return (
    <div className={styles.panel}>
      <Frame source={answer} what="the run">
        {(value) => <Content answer={value} />}
      </Frame>
    </div>
  );
}

const TONES: Readonly<Record<string, Tone>> = { completed: "ok", running: "accent", failed: "bad" };

function Content({ answer }: { answer: RunAnswer }) {
  const change = useChangeScreen();
  const { row } = answer;
  const owns = useOwns(row.user);
  return (
    <>
      <header className={styles.head}>
        <span>
          <small>Run {row.run}</small>
          <IconButton icon="close" label="Close details" onClick={() => change(closeRun(row.workload))} />
        </span>
        <h1>
          {nameRun(row)} <Tag tone={TONES[row.state] ?? "warn"}>{row.state.replaceAll("_", " ")}</Tag>
        </h1>
        {row.cause && <p className={styles.cause}>{row.cause}</p>}
        <p>
          {[row.experiment, row.user, row.host, row.device_type].filter(Boolean).join(" · ")}
          {row.started_at !== null && (
            <>
              {" · "}
              <RelativeTime at={row.started_at} />
            </>
          )}
        </p>
        <div className={styles.links}>
          <Button onClick={() => change(diagnose(row.workload))}>Diagnostics</Button>
          <TraceButton workload={row.workload} />
          <HangButton workload={row.workload} />
          {owns && <DeleteRun row={row} />}
        </div>
      </header>
      <Card title="Cost">
        <Facts
          facts={listQuantities([row])
            .filter(({ key }) => !key.includes(":"))
            .map(({ key, title, unit, of }) => ({
              name: title,
              value: formatNumber(of(row), unit) + unitAfter(key, row),
            }))}
        />
        {row.energy && (
          <p className={styles.note}>
            Energy is {row.energy.method}, {row.energy.scope === "process" ? "for its own share of" : "for all of"} its
            GPUs.
            {row.slowdown &&
              ` Slowdown by ${row.slowdown.basis} compared with ${formatPlural(row.slowdown.baseline.length, "run")} alone.`}
          </p>
        )}
      </Card>
      <Card title="Time">
        <Times answer={answer} />
      </Card>
      <Pairs title="Params" pairs={row.params} />
      <Pairs
        title="Results"
        pairs={Object.fromEntries(
          Object.entries(row.results).map(([name, value]) => [name, formatNumber(value, null)]),
        )}
      />
      <Pairs title="Tags" pairs={row.tags} />
      <Card title="Repeat this run">
        <code className={styles.code}>
          clusterscape run --repeat {row.run} --url {window.location.origin}
        </code>
        <code className={styles.code}>{answer.command.join(" ")}</code>
        <Facts facts={listEnvironment(answer)} />
      </Card>
      <Problems answer={answer} />
    </>
  );
}

function DeleteRun({ row }: { row: RunRow }) {
  const change = useChangeScreen();
  const remove = useRunRemoval();
  return (
    <ConfirmDialog
      trigger={<Button>Delete run…</Button>}
      title={`Delete ${nameRun(row)}?`}
      verb="Delete run"
      onConfirm={async () => {
        await remove(row.run);
        change(forgetRun(row));
      }}
    >
      Run {row.run} and all of its samples are deleted permanently, for all users. Files on the machine that ran it are
      kept, but cannot be uploaded again for some weeks.
    </ConfirmDialog>
  );
}

function Card({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles.card} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Pairs({ title, pairs }: { title: string; pairs: Readonly<Record<string, string>> }) {
  const facts = Object.entries(pairs).map(([name, value]) => ({ name, value }));
  if (facts.length === 0) return null;
  return (
    <Card title={title}>
      <Facts facts={facts} />
    </Card>
  );
}

const PARTS = [
  ["Queued", "queued_s", "var(--track)"],
  ["At the barrier", "barrier_s", "var(--warn)"],
  ["Running", "running_s", "var(--accent)"],
  ["Flushing", "flush_s", "var(--muted)"],
] as const;

/** Shows each part separately: waiting for other runs is not run time. */
function Times({ answer: { row } }: { answer: RunAnswer }) {
  const total = PARTS.reduce((sum, [, key]) => sum + (row.times[key] ?? 0), 0);
  return (
    <>
      <div className={styles.times} aria-hidden="true">
        {PARTS.map(([name, key, color]) => (
          <i key={name} style={{ flexGrow: (row.times[key] ?? 0) / (total || 1), background: color }} />
        ))}
      </div>
      <Facts facts={PARTS.map(([name, key]) => ({ name, value: formatSeconds(row.times[key]) }))} />
    </>
  );
}

function Problems({ answer }: { answer: RunAnswer }) {
  const lines = listProblems(answer);
  if (lines.length === 0) return null;
  return (
    <Card title="Problems">
      {lines.map((line) => (
        <p key={line} className={styles.problem}>
          {line}
        </p>
      ))}
    </Card>
  );
}
