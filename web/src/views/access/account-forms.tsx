// Forms that create, change, disable and remove an account.

import { useState } from "react";
import type { AccountAnswer, Role } from "../../api/generated.ts";
import { formatExact } from "../../base/time.ts";
import { ROLES, useAccessChange, useAccounts } from "../../data/access.ts";
import { Button } from "../../widgets/button.tsx";
import { Facts } from "../../widgets/facts.tsx";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import styles from "./access.module.css";
import { accountKey, toAccountChange, toNewAccount } from "./access-model.ts";
import { ChoiceField, Form, FormError, SideHead, TextField, useAttempt } from "./form.tsx";
import { ROLE_WORDS, WAY_WORDS } from "./words.ts";

const ROLE_CHOICES = ROLES.map((value) => ({ value, title: ROLE_WORDS[value] }));

export function NewAccountForm({ minLength, onClose }: { minLength: number; onClose: () => void }) {
  const change = useAccessChange();
  const [login, setLogin] = useState("");
  const [title, setTitle] = useState("");
  const [password, setPassword] = useState("");
  const [role, setRole] = useState<Role>("researcher");
  const [projects, setProjects] = useState("");
  const add = async () => {
    await change((client) => client.addAccount(toNewAccount({ login, title, password, role, projects })));
    onClose();
  };
  return (
    <div className={styles.side}>
      <SideHead kind="Local account" title="New account" onClose={onClose} />
      <Form action="Create account" onSubmit={add}>
        <TextField
          label="User name"
          value={login}
          autoComplete="off"
          isRequired
          hint="As in the scheduler"
          onChange={setLogin}
        />
        <TextField label="Display name" value={title} autoComplete="off" onChange={setTitle} />
        <TextField
          label="Password"
          type="password"
          value={password}
          autoComplete="new-password"
          isRequired
          minLength={minLength}
          hint={`At least ${minLength} characters`}
          onChange={setPassword}
        />
        <ChoiceField<Role> label="Role" value={role} choices={ROLE_CHOICES} onChange={setRole} />
        {role === "lead" && (
          <TextField label="Projects" value={projects} hint="Separated by spaces" onChange={setProjects} />
        )}
      </Form>
    </div>
  );
}

interface AccountDetailsProps {
  readonly account: string;
  readonly minLength: number;
  onClose(): void;
}

export function AccountDetails({ account: key, minLength, onClose }: AccountDetailsProps) {
  const account = useAccounts().value?.find((row) => accountKey(row) === key);
  if (!account) return null;
  return (
    <div className={styles.side}>
      <SideHead kind={WAY_WORDS[account.way]} title={account.login} onClose={onClose} />
      <Facts
        facts={[
          { name: "Name", value: account.title },
          { name: "Role", value: ROLE_WORDS[account.role] },
          { name: "Projects", value: account.projects.join(", ") || null },
          { name: "Created", value: formatExact(account.created_at) },
          {
            name: "Last sign-in",
            value: account.signed_in_at === null ? "never" : <RelativeTime at={account.signed_in_at} />,
          },
        ]}
      />
      {account.way === "local" && <ChangeForm account={account} minLength={minLength} />}
      <Removal account={account} onClose={onClose} />
    </div>
  );
}

function ChangeForm({ account, minLength }: { account: AccountAnswer; minLength: number }) {
  const change = useAccessChange();
  const [role, setRole] = useState(account.role);
  const [projects, setProjects] = useState(account.projects.join(" "));
  const [password, setPassword] = useState("");
  const save = async () => {
    const changes = toAccountChange(account, { role, projects, password });
    await change((client) => client.changeAccount(account.way, account.login, changes));
    setPassword("");
  };
  return (
    <Form action="Save" onSubmit={save}>
      <ChoiceField<Role> label="Role" value={role} choices={ROLE_CHOICES} onChange={setRole} />
      {role === "lead" && (
        <TextField label="Projects" value={projects} hint="Separated by spaces" onChange={setProjects} />
      )}
      <TextField
        label="New password"
        type="password"
        value={password}
        autoComplete="new-password"
        minLength={minLength}
        hint="Leave empty to keep it. A new password signs the user out everywhere"
        onChange={setPassword}
      />
    </Form>
  );
}

function Removal({
  account: { way, login, is_disabled: isDisabled },
  onClose,
}: {
  account: AccountAnswer;
  onClose: () => void;
}) {
  const change = useAccessChange();
  const { problem, isBusy, attempt } = useAttempt();
  const [isConfirming, setConfirming] = useState(false);
  const remove = () =>
    attempt(async () => {
      await change((client) => client.removeAccount(way, login));
      onClose();
    });
  return (
    <div className={styles.removal}>
      <FormError problem={problem} />
      <Button
        disabled={isBusy}
        onClick={() =>
          attempt(() => change((client) => client.changeAccount(way, login, { is_disabled: !isDisabled })))
        }
      >
        {isDisabled ? "Enable" : "Disable"}
      </Button>
      <Button
        disabled={isBusy}
        onClick={() => (isConfirming ? void remove() : setConfirming(true))}
        onBlur={() => setConfirming(false)}
      >
        {isConfirming ? "Confirm: remove with all tokens" : "Remove"}
      </Button>
    </div>
  );
}
