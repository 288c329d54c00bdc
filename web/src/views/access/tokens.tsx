// Table of API tokens: the user's own, or those of all accounts.

import type { SessionAnswer, TokenAnswer } from "../../api/generated.ts";
import { useTokens } from "../../data/access.ts";
import { Button } from "../../widgets/button.tsx";
import { Missing, Text } from "../../widgets/data-table/cells.tsx";
import type { Column } from "../../widgets/data-table/columns.ts";
import { Frame } from "../../widgets/frame.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import { Tag } from "../../widgets/tag.tsx";
import styles from "./access.module.css";
import { canCreateToken } from "./access-model.ts";
import { AccessTable } from "./access-table.tsx";
import type { Open } from "./index.tsx";
import { describeState } from "./words.ts";

interface TokensProps {
  readonly isAllAccounts: boolean;
  readonly session: SessionAnswer;
  readonly open: Open;
  onOpen(open: Open): void;
}

const OWNER: Column<TokenAnswer> = {
  key: "owner",
  title: "Owner",
  width: 120,
  grow: 1,
  rank: 1,
  cell: ({ login }) => <Text>{login}</Text>,
  sortKey: ({ login }) => login,
  csv: ({ login }) => login,
};

const COLUMNS: readonly Column<TokenAnswer>[] = [
  {
    key: "title",
    title: "Name",
    width: 160,
    grow: 2,
    rank: 0,
    cell: ({ title }) => <Text>{title}</Text>,
    sortKey: ({ title }) => title,
    csv: ({ title }) => title,
  },
  {
    key: "start",
    title: "Prefix",
    width: 110,
    grow: 0,
    rank: 4,
    cell: ({ start }) => <code>{start}…</code>,
    sortKey: ({ start }) => start,
    csv: ({ start }) => start,
  },
  {
    key: "scopes",
    title: "Scopes",
    width: 140,
    grow: 1,
    rank: 2,
    cell: ({ scopes }) => <Text>{scopes.join(", ")}</Text>,
    sortKey: ({ scopes }) => scopes.join(", "),
    csv: ({ scopes }) => scopes.join(", "),
  },
  {
    key: "state",
    title: "State",
    width: 90,
    grow: 0,
    rank: 0,
    cell: (token) => <Tag tone={token.is_live ? "ok" : "neutral"}>{describeState(token)}</Tag>,
    sortKey: describeState,
    csv: describeState,
  },
  {
    key: "used",
    title: "Last used",
    width: 100,
    grow: 0,
    align: "right",
    rank: 3,
    isLargestFirst: true,
    cell: ({ used_at: usedAt }) => (usedAt === null ? <Missing /> : <RelativeTime at={usedAt} />),
    sortKey: ({ used_at: usedAt }) => usedAt,
    csv: ({ used_at: usedAt }) => usedAt,
  },
  {
    key: "expires",
    title: "Expires",
    width: 90,
    grow: 0,
    align: "right",
    rank: 3,
    cell: ({ expires_at: expiresAt }) => <RelativeTime at={expiresAt} />,
    sortKey: ({ expires_at: expiresAt }) => expiresAt,
    csv: ({ expires_at: expiresAt }) => expiresAt,
  },
];

const ALL_COLUMNS = [OWNER, ...COLUMNS];

export function Tokens({ isAllAccounts, session, open, onOpen }: TokensProps) {
  const tokens = useTokens(isAllAccounts);
  const canCreate = canCreateToken(session);
  return (
    <>
      <div className={styles.toolbar}>
        <h1>{isAllAccounts ? "All tokens" : "My tokens"}</h1>
        <span>Credentials for scripts and trackers</span>
        {canCreate && !isAllAccounts && (
          <Button look="primary" onClick={() => onOpen({ kind: "new" })}>
            <Icon name="plus" size={14} /> New token
          </Button>
        )}
      </div>
      <Frame source={tokens} what="tokens">
        {(rows) => (
          <AccessTable
            label={isAllAccounts ? "All tokens" : "My tokens"}
            columns={isAllAccounts ? ALL_COLUMNS : COLUMNS}
            rows={rows}
            keyOf={({ key }) => key}
            selectedKey={open?.kind === "row" ? open.key : null}
            firstSort={{ column: "expires", descending: true }}
            empty={<Empty canCreate={canCreate} isAllAccounts={isAllAccounts} />}
            onSelect={({ key }) => onOpen({ kind: "row", key })}
          />
        )}
      </Frame>
    </>
  );
}

function Empty({ canCreate, isAllAccounts }: { canCreate: boolean; isAllAccounts: boolean }) {
  if (isAllAccounts) return <p>No tokens yet.</p>;
  if (canCreate) return <p>You have no tokens. Scripts and trackers use one to sign in.</p>;
  return (
    <p>
      Tokens belong to an account, and you are not signed in with one. An operator can create a token for an account:{" "}
      <code>clusterscape token create</code>.
    </p>
  );
}
