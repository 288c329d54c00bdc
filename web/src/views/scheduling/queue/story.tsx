// Explains why a workload waits: the reason, workloads ahead, the nodes it needs and who holds them, its promised start with
// every slip, and changes that would start it sooner.

import type { PriorityPart, QueueRow, WaitingStory, WorkloadAnswer } from "../../../api/generated.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { formatDuration, formatInstant, formatShortDuration } from "../../../base/time.ts";
import { useWorkload } from "../../../data/queries.ts";
import { useStory } from "../../../data/scheduling.ts";
import { Card, OpenLink, Panel, PanelHead } from "../../../parts/panel/panel.tsx";
import { openView } from "../../../state/changes.ts";
import { showWaiting } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { useNow } from "../../../widgets/clock-context.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { HolderTimeline } from "./holder-timeline.tsx";
import { SlipWaterfall } from "./slip-waterfall.tsx";
import styles from "./story.module.css";
import { describePosition, nativeId } from "./words.ts";

export function Story({ workload }: { workload: string }) {
  const story = useStory(workload);
  const change = useChangeScreen();
  const row = story.value?.row;
  const isOver = story.value !== undefined && row === null;
  const details = useWorkload(workload).value?.workload;
  return (
    <Panel key={workload}>
      <PanelHead
        kind={isOver ? "Why it waited" : "Why it waits"}
        title={row?.name ?? details?.name ?? workload}
        tag={row && <Tag>{describePosition(row)}</Tag>}
        detail={row ? <Owner row={row} /> : details ? describeOwner(details) : null}
        actions={
          story.value && (
            <>
              <Button onClick={() => change(isOver ? openView("overview") : showWaiting)}>Show in the overview</Button>
              {isOver && details?.started_at != null && (
                <Button onClick={() => change(openView("diagnostics"))}>Diagnose</Button>
              )}
            </>
          )
        }
      />
      <Frame source={story} what="the explanation">
        {(value) => (
          <>
            <Explanation story={value} />
            {value.changes.length > 0 && <SoonerChanges story={value} />}
            {value.parts.length > 0 && row && <PriorityFactors parts={value.parts} priority={row.priority} />}
            {value.ahead.length > 0 && row && <Ahead story={value} row={row} />}
            {value.holders.length > 0 && (
              <Card title="Who holds its nodes">
                <HolderTimeline story={value} />
              </Card>
            )}
            {value.promise && (
              <Card title="How its latest start has moved">
                <SlipWaterfall promise={value.promise} />
              </Card>
            )}
            <details className={styles.assumptions}>
              <summary>Assumptions</summary>
              {value.assumptions.map((line) => (
                <p key={line}>{line}</p>
              ))}
            </details>
          </>
        )}
      </Frame>
    </Panel>
  );
}

function describeOwner({ user, project, workload }: WorkloadAnswer): string {
  return [user, project, nativeId(workload)].filter(Boolean).join(" · ");
}

function Owner({ row }: { row: QueueRow }) {
  return (
    <>
      {[row.user, row.project, nativeId(row.workload)].filter(Boolean).join(" · ")}
      <br />
      {formatPlural(row.gpus, "GPU")} {row.machine_type ?? ""} on {formatPlural(row.nodes, "node")} for up to{" "}
      {formatDuration(row.limit_s)}
    </>
  );
}

function Explanation({ story }: { story: WaitingStory }) {
  const now = useNow();
  const { row } = story;
  const lines = story.text.filter((line) => !line.startsWith("Cheapest change"));
  return (
    <Card label="Explanation">
      <div className={styles.explanation}>
        {lines.map((line) => (
          <p key={line}>{line}</p>
        ))}
        {row?.likely && (
          <p>
            Likely start <strong>{formatInstant(row.likely.likely_at, now)}</strong>, with 80 % probability between{" "}
            {formatInstant(row.likely.from_at, now)} and {formatInstant(row.likely.to_at, now)}.
          </p>
        )}
        {row?.planned_at != null && (
          <p>Latest start {formatInstant(row.planned_at, now)}, if all jobs ahead run to their limits.</p>
        )}
      </div>
    </Card>
  );
}

function SoonerChanges({ story: { changes, baseline } }: { story: WaitingStory }) {
  return (
    <Card title={`Changes that would make its ${baseline} start sooner`}>
      <ol className={styles.sooner}>
        {changes.map((change, index) => (
          <li key={change.kind} data-best={index === 0 || undefined}>
            <span>{change.words.charAt(0).toUpperCase() + change.words.slice(1)}</span>
            <b>{formatShortDuration(change.gain_s)} sooner</b>
          </li>
        ))}
      </ol>
    </Card>
  );
}

/** The factors of its priority, as the scheduler reports them. */
function PriorityFactors({ parts, priority }: { parts: readonly PriorityPart[]; priority: number | null }) {
  const maxPoints = Math.max(1, ...parts.map(({ points }) => Math.abs(points)));
  return (
    <Card title={priority === null ? "Priority" : `Priority ${formatCount(priority)}`}>
      <ul className={styles.parts}>
        {parts.map(({ name, title, points }) => (
          <li key={name}>
            <span>{title}</span>
            <i>
              <em
                data-negative={points < 0 || undefined}
                style={{ width: `${(100 * Math.abs(points)) / maxPoints}%` }}
              />
            </i>
            <strong>{points < 0 ? `−${formatCount(-points)}` : formatCount(points)}</strong>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Ahead({ story, row }: { story: WaitingStory; row: QueueRow }) {
  const shown = story.ahead.slice(-SHOWN_AHEAD);
  return (
    <Card title={`${formatCount(row.ahead)} ahead, ${formatCount(row.ahead_gpus)} GPUs`}>
      <ul className={styles.ahead}>
        {row.ahead > shown.length && (
          <li className={styles.more}>{formatCount(row.ahead - shown.length)} more before these</li>
        )}
        {shown.map((other) => (
          <li key={other.workload}>
            <span>
              <OpenLink kind="workload" name={other.workload}>
                {nativeId(other.workload)}
              </OpenLink>{" "}
              {other.user}
            </span>
            <b>{formatPlural(other.gpus, "GPU")}</b>
            <small>{other.why}</small>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const SHOWN_AHEAD = 6;
