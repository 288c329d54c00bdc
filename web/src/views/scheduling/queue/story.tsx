// Why one workload waits, as a story: the reason, who is ahead, what must come free and who holds it, what was promised and
// how that moved, and the cheapest change that would help.

import type { CheaperChange, PriorityPart, QueueRow, WaitingStory, WorkloadAnswer } from "../../../api/generated.ts";
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
import { nativeId, sayPlace } from "./words.ts";

export function Story({ workload }: { workload: string }) {
  const story = useStory(workload);
  const change = useChangeScreen();
  const row = story.value?.row;
  const isOver = story.value !== undefined && row === null;
  const known = useWorkload(workload).value?.workload;
  return (
    <Panel key={workload}>
      <PanelHead
        kind={isOver ? "Why it waited" : "Why it waits"}
        title={row?.name ?? known?.name ?? workload}
        tag={row && <Tag>{sayPlace(row)}</Tag>}
        detail={row ? <Owner row={row} /> : known ? sayOwner(known) : null}
      />
      <Frame source={story} what="the story">
        {(value) => (
          <>
            <div className={styles.ways}>
              <Button onClick={() => change(isOver ? openView("overview") : showWaiting)}>Show in the overview</Button>
              {isOver && known?.started_at != null && (
                <Button onClick={() => change(openView("diagnostics"))}>Diagnose</Button>
              )}
            </div>
            <Told story={value} />
            {value.changes.length > 0 && <Sooner changes={value.changes} />}
            {value.parts.length > 0 && row && <Parts parts={value.parts} priority={row.priority} />}
            {value.ahead.length > 0 && row && <Ahead story={value} row={row} />}
            {value.holders.length > 0 && (
              <Card title="Who holds its space">
                <HolderTimeline story={value} />
              </Card>
            )}
            {value.promise && (
              <Card title="What was promised">
                <SlipWaterfall promise={value.promise} />
              </Card>
            )}
            <details className={styles.assumptions}>
              <summary>What this rests on</summary>
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

function sayOwner({ user, project, workload }: WorkloadAnswer): string {
  return [user, project, nativeId(workload)].filter(Boolean).join(" · ");
}

function Owner({ row }: { row: QueueRow }) {
  return (
    <>
      {[row.user, row.project, nativeId(row.workload)].filter(Boolean).join(" · ")}
      <br />
      {formatPlural(row.gpus, "GPU")} {row.machine_type ?? ""} on {formatPlural(row.nodes, "node")} for{" "}
      {formatDuration(row.limit_s)} at most
    </>
  );
}

function Told({ story }: { story: WaitingStory }) {
  const now = useNow();
  const { row } = story;
  const lines = story.text.filter((line) => !line.startsWith("Cheapest change"));
  return (
    <Card label="The story">
      <div className={styles.told}>
        {lines.map((line) => (
          <p key={line}>{line}</p>
        ))}
        {row?.likely && (
          <p>
            Likely start <strong>{formatInstant(row.likely.likely_at, now)}</strong>, with 80 % probability between{" "}
            {formatInstant(row.likely.from_at, now)} and {formatInstant(row.likely.to_at, now)}.
          </p>
        )}
        {row?.planned_at != null && <p>At the latest {formatInstant(row.planned_at, now)}, by everybody’s limits.</p>}
      </div>
    </Card>
  );
}

function Sooner({ changes }: { changes: readonly CheaperChange[] }) {
  return (
    <Card title="What would start it sooner">
      <p className={styles.hint}>Compared with its start at the latest.</p>
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

/** What its priority is made of, as the scheduler tells. */
function Parts({ parts, priority }: { parts: readonly PriorityPart[]; priority: number | null }) {
  const most = Math.max(1, ...parts.map(({ points }) => Math.abs(points)));
  return (
    <Card title={priority === null ? "Its priority" : `Its priority, ${formatCount(priority)}`}>
      <ul className={styles.parts}>
        {parts.map(({ name, title, points }) => (
          <li key={name}>
            <span>{title}</span>
            <i>
              <em data-negative={points < 0 || undefined} style={{ width: `${(100 * Math.abs(points)) / most}%` }} />
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
