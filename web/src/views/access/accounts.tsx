// Table of accounts.

import type { AccountAnswer } from "../../api/generated.ts";
import { ROLES, useAccounts } from "../../data/access.ts";
import { Button } from "../../widgets/button.tsx";
import { Missing, Name, Text } from "../../widgets/data-table/cells.tsx";
import type { Column } from "../../widgets/data-table/columns.ts";
import { Frame } from "../../widgets/frame.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import { Tag } from "../../widgets/tag.tsx";
import styles from "./access.module.css";
import { accountKey } from "./access-model.ts";
import { AccessTable } from "./access-table.tsx";
import type { Open } from "./index.tsx";
import { ROLE_WORDS, WAY_WORDS } from "./words.ts";

const COLUMNS: readonly Column<AccountAnswer>[] = [
  {
    key: "login",
    title: "User name",
    width: 180,
    grow: 2,
    rank: 0,
    cell: ({ login, title }) => <Name mark={<Icon name="user" size={14} />} name={login} detail={title} />,
    sortKey: ({ login }) => login,
    csv: ({ login }) => login,
  },
  {
    key: "role",
    title: "Role",
    width: 130,
    grow: 0,
    rank: 0,
    cell: ({ role, is_disabled: isDisabled }) =>
      isDisabled ? <Tag tone="bad">disabled</Tag> : <Text>{ROLE_WORDS[role]}</Text>,
    sortKey: ({ role }) => ROLES.indexOf(role),
    csv: ({ role }) => role,
  },
  {
    key: "projects",
    title: "Projects",
    width: 120,
    grow: 1,
    rank: 2,
    cell: ({ projects }) => <Text>{projects.join(", ")}</Text>,
    sortKey: ({ projects }) => projects.join(", "),
    csv: ({ projects }) => projects.join(", "),
  },
  {
    key: "way",
    title: "Sign-in method",
    width: 120,
    grow: 0,
    rank: 3,
    cell: ({ way }) => <Text isMuted>{WAY_WORDS[way]}</Text>,
    sortKey: ({ way }) => way,
    csv: ({ way }) => way,
  },
  {
    key: "signed",
    title: "Last sign-in",
    width: 110,
    grow: 0,
    align: "right",
    rank: 1,
    isLargestFirst: true,
    cell: ({ signed_in_at: at }) => (at === null ? <Missing /> : <RelativeTime at={at} />),
    sortKey: ({ signed_in_at: at }) => at,
    csv: ({ signed_in_at: at }) => at,
  },
];

export function Accounts({ open, onOpen }: { open: Open; onOpen: (open: Open) => void }) {
  const accounts = useAccounts();
  return (
    <>
      <div className={styles.toolbar}>
        <h1>Accounts</h1>
        <span>Everyone who may sign in or has signed in</span>
        <Button look="primary" onClick={() => onOpen({ kind: "new" })}>
          <Icon name="plus" size={14} /> New account
        </Button>
      </div>
      <Frame source={accounts} what="accounts">
        {(rows) => (
          <AccessTable
            label="Accounts"
            columns={COLUMNS}
            rows={rows}
            keyOf={accountKey}
            selectedKey={open?.kind === "row" ? open.key : null}
            firstSort={{ column: "login", descending: false }}
            empty={<p>No accounts yet.</p>}
            onSelect={(row) => onOpen({ kind: "row", key: accountKey(row) })}
          />
        )}
      </Frame>
    </>
  );
}
