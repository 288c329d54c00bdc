// Form that creates a token and shows its secret once; details of one token, with a button that revokes it.

import { useState } from "react";
import type { MadeToken, Scope, SessionAnswer } from "../../api/generated.ts";
import { formatExact } from "../../base/time.ts";
import { useAccessChange, useTokens } from "../../data/access.ts";
import { Button } from "../../widgets/button.tsx";
import { Facts } from "../../widgets/facts.tsx";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import styles from "./access.module.css";
import { listScopes, toggleScope } from "./access-model.ts";
import { ChoiceField, Form, FormError, SideHead, TextField, useAttempt } from "./form.tsx";
import { describeState, LIFETIMES_DAYS, WAY_WORDS } from "./words.ts";

export function NewTokenForm({ session, onClose }: { session: SessionAnswer; onClose: () => void }) {
  const change = useAccessChange();
  const [title, setTitle] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read"]);
  const [days, setDays] = useState("90");
  const [created, setCreated] = useState<MadeToken | null>(null);
  if (created) return <CreatedToken created={created} onClose={onClose} />;
  return (
    <div className={styles.side}>
      <SideHead kind="API token" title="New token" onClose={onClose} />
      <Form
        action="Create token"
        onSubmit={async () =>
          setCreated(await change((client) => client.createToken({ title, scopes, days: Number(days) })))
        }
      >
        <TextField label="Token name" value={title} isRequired onChange={setTitle} />
        <fieldset className={styles.scopes}>
          <legend>Scopes</legend>
          {listScopes(session).map(({ scope, title: name, help }) => (
            <label key={scope}>
              <input
                type="checkbox"
                checked={scopes.includes(scope)}
                onChange={() => setScopes(toggleScope(scopes, scope))}
              />
              <span>
                {name} <small>{help}</small>
              </span>
            </label>
          ))}
        </fieldset>
        <ChoiceField
          label="Expires after"
          value={days}
          choices={LIFETIMES_DAYS.map((lifetime) => ({ value: String(lifetime), title: `${lifetime} days` }))}
          onChange={setDays}
        />
      </Form>
    </div>
  );
}

function CreatedToken({ created: { token, secret }, onClose }: { created: MadeToken; onClose: () => void }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard.writeText(secret).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <div className={styles.side}>
      <SideHead kind="API token" title={token.title} onClose={onClose} />
      <p role="status">
        Copy the token now: <b>it is shown only once.</b>
      </p>
      <output className={styles.secret}>{secret}</output>
      <Button look="primary" onClick={copy}>
        {isCopied ? "Copied" : "Copy"}
      </Button>
      <p>
        Send it as <code>Authorization: Bearer …</code>, or pass it to <code>clusterscape run --token</code>.
      </p>
    </div>
  );
}

interface TokenDetailsProps {
  readonly isAllAccounts: boolean;
  readonly token: string;
  onClose(): void;
}

export function TokenDetails({ isAllAccounts, token: key, onClose }: TokenDetailsProps) {
  const change = useAccessChange();
  const { problem, isBusy, attempt } = useAttempt();
  const token = useTokens(isAllAccounts).value?.find((row) => row.key === key);
  if (!token) return null;
  return (
    <div className={styles.side}>
      <SideHead kind="API token" title={token.title} onClose={onClose} />
      <Facts
        facts={[
          { name: "State", value: describeState(token) },
          { name: "Owner", value: `${token.login} (${WAY_WORDS[token.way]})` },
          { name: "Scopes", value: token.scopes.join(", ") },
          { name: "Prefix", value: <code>{token.start}…</code> },
          { name: "Created", value: formatExact(token.created_at) },
          { name: "Last used", value: token.used_at === null ? "never" : <RelativeTime at={token.used_at} /> },
          { name: "Expires", value: formatExact(token.expires_at) },
          { name: "Revoked", value: token.revoked_at === null ? null : formatExact(token.revoked_at) },
        ]}
      />
      <FormError problem={problem} />
      {token.is_live && (
        <Button disabled={isBusy} onClick={() => attempt(() => change((client) => client.revokeToken(key)))}>
          Revoke token
        </Button>
      )}
    </div>
  );
}
