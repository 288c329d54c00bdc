// Differences between two traces, as sentences and as a table.

import type { TraceChange, TraceDiffAnswer } from "../../api/generated.ts";
import { formatCsv } from "../../base/csv.ts";
import { downloadText } from "../../base/download.ts";
import { useTraceDiff } from "../../data/traces.ts";
import { ExportMenu } from "../../widgets/export-menu.tsx";
import { Frame } from "../../widgets/frame.tsx";
import styles from "./diff.module.css";
import { formatSeconds } from "./graph/axis.ts";

const MAX_CHANGES = 60;

export function DiffPanel({ before, after }: { before: string; after: string }) {
  const source = useTraceDiff(before, after);
  return (
    <section className={styles.diff} aria-label="Differences">
      <Frame source={source} what="the comparison">
        {(diff) => <Content diff={diff} />}
      </Frame>
    </section>
  );
}

function Content({ diff }: { diff: TraceDiffAnswer }) {
  const { changes, sentences, notes } = diff;
  return (
    <>
      <header>
        <h2>
          {diff.before.name} → {diff.after.name}
        </h2>
        <ExportMenu
          what="the differences"
          files={{ csv: () => downloadText("trace-diff.csv", toCsv(changes), "text/csv") }}
        />
      </header>
      <ul>
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
        {sentences.length === 0 && <li>No significant differences.</li>}
        {notes.map((note) => (
          <li key={note} data-note={true}>
            {note}
          </li>
        ))}
      </ul>
      <div className={styles.changes}>
        <table aria-label="Changes">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
              <th scope="col">Difference per step</th>
              <th scope="col">95 % interval</th>
            </tr>
          </thead>
          <tbody>
            {changes.slice(0, MAX_CHANGES).map((change) => (
              <tr
                key={`${change.kind} ${change.name} ${change.rank}`}
                data-significant={change.is_significant || undefined}
                data-tip={change.sentence}
              >
                <th scope="row">
                  <small>{change.kind}</small> {change.name}
                  {change.rank !== null && <small> rank {change.rank}</small>}
                </th>
                <td>{formatSeconds(change.before_s)}</td>
                <td>{formatSeconds(change.after_s)}</td>
                <td>{formatSigned(change.difference_s)}</td>
                <td>
                  {change.low_s === null || change.high_s === null
                    ? "too few steps"
                    : `${formatSigned(change.low_s)} … ${formatSigned(change.high_s)}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

export function formatSigned(seconds: number): string {
  return `${seconds > 0 ? "+" : seconds < 0 ? "−" : ""}${formatSeconds(Math.abs(seconds))}`;
}

export function toCsv(changes: readonly TraceChange[]): string {
  return formatCsv(
    ["kind", "name", "rank", "before_s", "after_s", "difference_s", "low_s", "high_s", "is_significant"],
    changes.map((change) => [
      change.kind,
      change.name,
      change.rank,
      change.before_s,
      change.after_s,
      change.difference_s,
      change.low_s,
      change.high_s,
      change.is_significant ? 1 : 0,
    ]),
  );
}
