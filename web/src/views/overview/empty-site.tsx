// Shown instead of the picture if there are no units: why, and what to do.

import type { ReactNode } from "react";
import type { Sources } from "../../api/generated.ts";
import { formatCount, formatPlural } from "../../base/format.ts";
import { toSentence } from "../../base/problem.ts";
import { useSources } from "../../data/queries.ts";
import { travelTo } from "../../state/time.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import styles from "./empty-site.module.css";

export function EmptySite() {
  const { at } = useScreen();
  return (
    <div className={styles.empty} role="status">
      {at === null ? <NoUnits /> : <NoDataThen />}
    </div>
  );
}

function NoDataThen() {
  const change = useChangeScreen();
  return (
    <>
      <strong>No data for this time</strong>
      <p>No source reported a GPU then, or the data is older than the retention time.</p>
      <Button onClick={() => change(travelTo(null))}>Back to now</Button>
    </>
  );
}

function NoUnits() {
  const sources = useSources(true).value;
  return (
    <>
      <strong>No GPUs yet</strong>
      {sources === undefined ? <p>They appear as soon as a source reports them.</p> : <EmptyReason sources={sources} />}
    </>
  );
}

function EmptyReason({ sources: { groups, awaited } }: { sources: Sources }) {
  const total = sum(groups.map((group) => group.total));
  const failing = sum(groups.map((group) => group.failing));
  const [failure] = groups.flatMap((group) => group.failures);
  if (awaited.length > 0 && failing === 0) {
    return <p>The server has just started. Waiting for the first data from {awaited.join(" and ")}.</p>;
  }
  if (total === 0) {
    return (
      <>
        <p>No source is configured. Run on the server:</p>
        <ul>
          <Step command="clusterscape init">configures your exporters and scheduler and checks that they respond</Step>
          <Step command="clusterscape serve">collects from them; GPUs appear here automatically</Step>
          <Step command="clusterscape demo">shows a simulated cluster, to try ClusterScape first</Step>
        </ul>
      </>
    );
  }
  if (failing === 0)
    return <p>{formatPlural(total, "source responds", "sources respond")}, but none has reported a GPU.</p>;
  return (
    <>
      <p>
        {formatCount(failing)} of {formatPlural(total, "source")} {failing === 1 ? "fails" : "fail"}.
        {failure?.message && ` ${toSentence(failure.message)}`} {failure?.hint && toSentence(failure.hint)}
      </p>
      <ul>
        <Step command="clusterscape doctor">checks every source; run it on the server</Step>
      </ul>
    </>
  );
}

function Step({ command, children }: { command: string; children: ReactNode }) {
  return (
    <li>
      <code>{command}</code>
      <span>{children}</span>
    </li>
  );
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
