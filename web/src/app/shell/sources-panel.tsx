// The panel of data sources: the health of each kind of source, samples that were not stored and why, and the state of
// the store.

import type { SourceGroup, Sources } from "../../api/generated.ts";
import { formatBytes, formatCount } from "../../base/format.ts";
import { toSentence } from "../../base/problem.ts";
import { useSources } from "../../data/queries.ts";
import { Facts } from "../../widgets/facts.tsx";
import { Frame } from "../../widgets/frame.tsx";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import { Tag } from "../../widgets/tag.tsx";
import { NameQuestions } from "./name-questions.tsx";
import styles from "./sources-panel.module.css";

const MOST_FAILURES = 8;

export function SourcesPanel() {
  const sources = useSources(true);
  return (
    <Frame source={sources} what="sources">
      {(value) => <Content sources={value} />}
    </Frame>
  );
}

function Content({ sources }: { sources: Sources }) {
  const { store } = sources;
  return (
    <div className={styles.panel}>
      <section>
        <h2>Sources</h2>
        {sources.groups.length === 0 && <p>No source has reported yet.</p>}
        {sources.groups.map((group) => (
          <Group key={group.kind} group={group} />
        ))}
      </section>
      <NameQuestions questions={sources.questions} nodesWithoutExporter={sources.nodes_without_exporter} />
      <section>
        <h2>Not stored</h2>
        {sources.dropped.length === 0 ? (
          <p>All received samples were stored.</p>
        ) : (
          <Facts
            facts={sources.dropped.map(({ kind, reason, count }) => ({
              name: `${kind}: ${reason.replaceAll("_", " ")}`,
              value: formatCount(count),
            }))}
          />
        )}
      </section>
      <section>
        <h2>Store</h2>
        {store.trouble !== null && (
          <p className={styles.failure} role="status">
            {toSentence(store.trouble)} Samples are buffered on disk and will be stored later.
          </p>
        )}
        <Facts
          facts={[
            { name: "engine", value: store.engine },
            { name: "samples", value: store.samples === null ? null : formatCount(store.samples) },
            { name: "on disk", value: store.bytes_on_disk === null ? null : formatBytes(store.bytes_on_disk) },
            { name: "since", value: store.oldest_at === null ? null : <RelativeTime at={store.oldest_at} /> },
            { name: "received since start", value: `${formatCount(sources.samples_total)} samples` },
            ...(store.waiting_samples > 0
              ? [{ name: "buffered on disk", value: `${formatCount(store.waiting_samples)} samples` }]
              : []),
            ...(store.lost_samples > 0
              ? [{ name: "lost since start", value: `${formatCount(store.lost_samples)} samples` }]
              : []),
          ]}
        />
      </section>
    </div>
  );
}

function Group({ group }: { group: SourceGroup }) {
  const hidden = group.failing - Math.min(group.failures.length, MOST_FAILURES);
  return (
    <div className={styles.group}>
      <div className={styles.line}>
        <b>{group.kind}</b>
        <small>
          {group.total > 1 && `${formatCount(group.total)} · `}
          {group.last_at === null ? "never" : <RelativeTime at={group.last_at} />}
        </small>
        {group.failing === 0 ? (
          <Tag tone={group.limited === 0 ? "ok" : "warn"}>{group.limited === 0 ? "OK" : "over a limit"}</Tag>
        ) : (
          <Tag tone="bad">{group.total > 1 ? `${formatCount(group.failing)} failing` : "failing"}</Tag>
        )}
      </div>
      {group.failures.slice(0, MOST_FAILURES).map((failure) => (
        <div key={failure.source} className={styles.failure}>
          <b>{failure.node ?? failure.source}</b> {failure.message}
          {failure.hint && <small>{failure.hint}</small>}
        </div>
      ))}
      {hidden > 0 && <p>and {formatCount(hidden)} more</p>}
      {group.notes.slice(0, MOST_FAILURES).map((note) => (
        <div key={note.source} className={styles.note}>
          <b>{note.node ?? note.source}</b> {note.message}
          {note.hint && <small>{note.hint}</small>}
        </div>
      ))}
    </div>
  );
}
