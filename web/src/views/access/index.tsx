// The access page: the user's own tokens; for administrators also accounts, all tokens and the audit log.

import { useState } from "react";
import type { SessionAnswer } from "../../api/generated.ts";
import { useSession } from "../../data/access.ts";
import { type AccessTable, showAccess } from "../../state/access.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Frame } from "../../widgets/frame.tsx";
import { FigureList, FigureTerm, Strip } from "../../widgets/strip.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import styles from "./access.module.css";
import { chooseTable, listSessionFacts, listTables } from "./access-model.ts";
import { AccountDetails, NewAccountForm } from "./account-forms.tsx";
import { Accounts } from "./accounts.tsx";
import { AuditLog } from "./audit-log.tsx";
import { PasswordForm } from "./password-form.tsx";
import { NewTokenForm, TokenDetails } from "./token-forms.tsx";
import { Tokens } from "./tokens.tsx";

/** What the side panel shows: nothing, a form for a new entry, or the row with this key. */
export type Open = { readonly kind: "new" } | { readonly kind: "row"; readonly key: string } | null;

export default function Access() {
  const session = useSession();
  return (
    <Frame source={session} what="your session">
      {(value) => <Page session={value} />}
    </Frame>
  );
}

function Page({ session }: { session: SessionAnswer }) {
  const { access } = useScreen();
  const table = chooseTable(session, access);
  const [open, setOpen] = useState<Open>(null);
  const change = useChangeScreen();
  const close = () => setOpen(null);
  return (
    <ViewLayout
      strip={<AccessStrip session={session} />}
      controls={
        <div>
          <nav className={styles.tables} aria-label="Tables">
            {listTables(session).map(({ table: name, title }) => (
              <button
                key={name}
                type="button"
                aria-current={name === table ? "page" : undefined}
                onClick={() => {
                  change(showAccess(name));
                  close();
                }}
              >
                {title}
              </button>
            ))}
          </nav>
          {session.who?.way === "local" && <PasswordForm minLength={session.password_min_length} />}
        </div>
      }
      details={open && <Details table={table} open={open} session={session} onClose={close} />}
    >
      {table === "accounts" ? (
        <Accounts open={open} onOpen={setOpen} />
      ) : table === "audit" ? (
        <AuditLog />
      ) : (
        <Tokens key={table} isAllAccounts={table === "tokens"} session={session} open={open} onOpen={setOpen} />
      )}
    </ViewLayout>
  );
}

interface DetailsProps {
  readonly table: AccessTable;
  readonly open: NonNullable<Open>;
  readonly session: SessionAnswer;
  onClose(): void;
}

function Details({ table, open, session, onClose }: DetailsProps) {
  if (table === "accounts") {
    if (open.kind === "new") return <NewAccountForm minLength={session.password_min_length} onClose={onClose} />;
    return (
      <AccountDetails key={open.key} account={open.key} minLength={session.password_min_length} onClose={onClose} />
    );
  }
  if (open.kind === "new") return <NewTokenForm session={session} onClose={onClose} />;
  return <TokenDetails key={open.key} isAllAccounts={table === "tokens"} token={open.key} onClose={onClose} />;
}

function AccessStrip({ session }: { session: SessionAnswer }) {
  const facts = listSessionFacts(session);
  if (facts.length === 0) return null;
  return (
    <Strip>
      <FigureList>
        {facts.map(({ label, value }) => (
          <FigureTerm key={label} name={label} value={value} />
        ))}
      </FigureList>
    </Strip>
  );
}
