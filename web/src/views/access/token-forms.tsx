// Making a token, whose secret is shown this once; and one token in detail, with the way to end it.

import { useState } from "react";
import type { MadeToken, Scope, SessionAnswer } from "../../api/generated.ts";
import { formatExact } from "../../base/time.ts";
import { useAccessChange, useTokens } from "../../data/access.ts";
import { Button } from "../../widgets/button.tsx";
import { Facts } from "../../widgets/facts.tsx";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import styles from "./access.module.css";
import { listScopes, toggleScope } from "./access-model.ts";
import { ChoiceField, Complaint, Form, SideHead, TextField, useAttempt } from "./form.tsx";
import { describeState, LIVES_DAYS, WAY_WORDS } from "./words.ts";

export function NewTokenForm({ session, onClose }: { session: SessionAnswer; onClose: () => void }) {
  const change = useAccessChange();
  const [title, setTitle] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read"]);
  const [days, setDays] = useState("90");
  const [made, setMade] = useState<MadeToken | null>(null);
  if (made) return <Made made={made} onClose={onClose} />;
  return (
    <div className={styles.side}>
      <SideHead kind="API token" title="New token" onClose={onClose} />
      <Form
        action="Make the token"
        onSubmit={async () =>
          setMade(await change((client) => client.createToken({ title, scopes, days: Number(days) })))
        }
      >
        <TextField label="What it is for" value={title} isRequired onChange={setTitle} />
        <fieldset className={styles.scopes}>
          <legend>What it may do</legend>
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
          choices={LIVES_DAYS.map((each) => ({ value: String(each), title: `${each} days` }))}
          onChange={setDays}
        />
      </Form>
    </div>
  );
}

function Made({ made: { token, secret }, onClose }: { made: MadeToken; onClose: () => void }) {
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
        Copy the token now: <b>it is shown this once only.</b>
      </p>
      <output className={styles.secret}>{secret}</output>
      <Button look="primary" onClick={copy}>
        {isCopied ? "Copied" : "Copy"}
      </Button>
      <p>
        Send it as <code>Authorization: Bearer …</code>, or give it to <code>clusterscape run --token</code>.
      </p>
    </div>
  );
}

interface TokenDetailsProps {
  readonly everybody: boolean;
  readonly token: string;
  onClose(): void;
}

export function TokenDetails({ everybody, token: key, onClose }: TokenDetailsProps) {
  const change = useAccessChange();
  const { problem, isBusy, attempt } = useAttempt();
  const token = useTokens(everybody).value?.find((each) => each.key === key);
  if (!token) return null;
  return (
    <div className={styles.side}>
      <SideHead kind="API token" title={token.title} onClose={onClose} />
      <Facts
        facts={[
          { name: "State", value: describeState(token) },
          { name: "Owner", value: `${token.login} (${WAY_WORDS[token.way]})` },
          { name: "Scopes", value: token.scopes.join(", ") },
          { name: "Begins with", value: <code>{token.start}…</code> },
          { name: "Made", value: formatExact(token.created_at) },
          { name: "Last used", value: token.used_at === null ? "never" : <RelativeTime at={token.used_at} /> },
          { name: "Expires", value: formatExact(token.expires_at) },
          { name: "Revoked", value: token.revoked_at === null ? null : formatExact(token.revoked_at) },
        ]}
      />
      <Complaint problem={problem} />
      {token.is_live && (
        <Button disabled={isBusy} onClick={() => attempt(() => change((client) => client.revokeToken(key)))}>
          Revoke the token
        </Button>
      )}
    </div>
  );
}
