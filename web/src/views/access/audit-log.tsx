// Audit log: who did or tried what, when and from which address. Newest first.

import { useDeferredValue, useState } from "react";
import type { AuditRow } from "../../api/generated.ts";
import { formatInstant } from "../../base/time.ts";
import { useAudit } from "../../data/access.ts";
import { Button } from "../../widgets/button.tsx";
import { useNow } from "../../widgets/clock-context.ts";
import { Text } from "../../widgets/data-table/cells.tsx";
import type { Column } from "../../widgets/data-table/columns.ts";
import { Frame } from "../../widgets/frame.tsx";
import { Tag } from "../../widgets/tag.tsx";
import { TextSearch } from "../../widgets/text-search.tsx";
import styles from "./access.module.css";
import { describeAuditRow, toAuditQuery } from "./access-model.ts";
import { AccessTable } from "./access-table.tsx";

const PAGE_ENTRIES = 200;
const MAX_ENTRIES = 1000;

function AuditTime({ at }: { at: number }) {
  return <time dateTime={new Date(at).toISOString()}>{formatInstant(at, useNow())}</time>;
}

function textColumn(key: string, title: string, width: number, rank: number, of: (row: AuditRow) => string | null) {
  const grow = key === "on" ? 3 : key === "action" ? 1 : 0;
  const cell = (row: AuditRow) => <Text isMuted={key === "way" || key === "address"}>{of(row)}</Text>;
  return { key, title, width, grow, rank, cell, sortKey: of, csv: of } satisfies Column<AuditRow>;
}

const COLUMNS: readonly Column<AuditRow>[] = [
  {
    key: "at",
    title: "Time",
    width: 110,
    grow: 0,
    rank: 0,
    isLargestFirst: true,
    cell: ({ at }) => <AuditTime at={at} />,
    sortKey: ({ at }) => at,
    csv: ({ at }) => at,
  },
  textColumn("actor", "User", 110, 0, ({ actor }) => actor),
  textColumn("action", "Action", 130, 0, ({ action }) => action),
  {
    key: "outcome",
    title: "",
    width: 80,
    grow: 0,
    rank: 0,
    cell: ({ outcome }) => (outcome === "refused" ? <Tag tone="warn">refused</Tag> : null),
    sortKey: ({ outcome }) => outcome,
    csv: ({ outcome }) => outcome,
  },
  textColumn("on", "Target", 180, 1, describeAuditRow),
  textColumn("way", "Sign-in method", 130, 3, ({ way }) => way),
  textColumn("address", "Address", 120, 2, ({ address }) => address),
];

export function AuditLog() {
  const [actor, setActor] = useState("");
  const [action, setAction] = useState("");
  const [limit, setLimit] = useState(PAGE_ENTRIES);
  const query = useDeferredValue(toAuditQuery(actor, action, limit));
  const page = useAudit(query);
  return (
    <>
      <div className={styles.toolbar}>
        <h1>Audit log</h1>
        <TextSearch label="User name" value={actor} onChange={setActor} />
        <TextSearch label="Action, such as sign_in or rule" value={action} onChange={setAction} />
        {page.value?.next && limit < MAX_ENTRIES && <Button onClick={() => setLimit(MAX_ENTRIES)}>Show older</Button>}
      </div>
      <Frame source={page} what="the audit log">
        {({ entries }) => (
          <AccessTable
            label="Audit log"
            columns={COLUMNS}
            rows={entries}
            keyOf={({ key }) => key}
            selectedKey={null}
            firstSort={{ column: "at", descending: true }}
            empty={<p>{query.actor || query.action ? "No matching entries." : "No entries yet."}</p>}
            onSelect={() => undefined}
          />
        )}
      </Frame>
    </>
  );
}
