// What stands in place of the picture where there is no unit at all: why, and what to do about it.

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
      {at === null ? <NoUnits /> : <NothingThen />}
    </div>
  );
}

function NothingThen() {
  const change = useChangeScreen();
  return (
    <>
      <strong>Nothing is stored of this minute</strong>
      <p>No source reported a GPU then, or what it reported is older than what is kept.</p>
      <Button onClick={() => change(travelTo(null))}>Back to now</Button>
    </>
  );
}

function NoUnits() {
  const sources = useSources(true).value;
  return (
    <>
      <strong>No GPUs yet</strong>
      {sources === undefined ? <p>They appear as soon as a source reports them.</p> : <Why sources={sources} />}
    </>
  );
}

function Why({ sources: { groups, awaited } }: { sources: Sources }) {
  const total = sum(groups.map((group) => group.total));
  const failing = sum(groups.map((group) => group.failing));
  const [failure] = groups.flatMap((group) => group.failures);
  if (awaited.length > 0 && failing === 0) {
    return <p>The server has just started. First answers are awaited from {awaited.join(" and ")}.</p>;
  }
  if (total === 0) {
    return (
      <>
        <p>This site has no source that could report any. On the machine of the server:</p>
        <ul>
          <Step command="clusterscape init">asks for your exporters and scheduler, and checks that they answer</Step>
          <Step command="clusterscape serve">then collects from them; GPUs appear here by themselves</Step>
          <Step command="clusterscape demo">shows a pretend cluster, to look around first</Step>
        </ul>
      </>
    );
  }
  if (failing === 0) return <p>{formatPlural(total, "source answers", "sources answer")}, but none has named a GPU.</p>;
  return (
    <>
      <p>
        {formatCount(failing)} of {formatPlural(total, "source")} {failing === 1 ? "fails" : "fail"}.
        {failure?.message && ` ${toSentence(failure.message)}`} {failure?.hint && toSentence(failure.hint)}
      </p>
      <ul>
        <Step command="clusterscape doctor">checks every source, on the machine of the server</Step>
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
