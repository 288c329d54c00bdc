// Form that changes the user's own password.

import { useState } from "react";
import { useAccessChange } from "../../data/access.ts";
import { Button } from "../../widgets/button.tsx";
import styles from "./access.module.css";
import { Form, TextField } from "./form.tsx";

export function PasswordForm({ minLength }: { minLength: number }) {
  const change = useAccessChange();
  const [isOpen, setOpen] = useState(false);
  const [isDone, setDone] = useState(false);
  const [currentPassword, setCurrentPassword] = useState("");
  const [password, setPassword] = useState("");
  const save = async () => {
    await change((client) => client.changePassword(currentPassword, password));
    setCurrentPassword("");
    setPassword("");
    setOpen(false);
    setDone(true);
  };
  return (
    <section className={styles.password} aria-label="My password">
      <h2>My password</h2>
      {isDone && <p role="status">Password changed. You are signed out in all other browsers.</p>}
      {isOpen ? (
        <Form action="Change password" onSubmit={save}>
          <TextField
            label="Current password"
            type="password"
            autoComplete="current-password"
            isRequired
            value={currentPassword}
            onChange={setCurrentPassword}
          />
          <TextField
            label="New password"
            type="password"
            autoComplete="new-password"
            isRequired
            minLength={minLength}
            hint={`At least ${minLength} characters`}
            value={password}
            onChange={setPassword}
          />
        </Form>
      ) : (
        <Button onClick={() => setOpen(true)}>Change password</Button>
      )}
    </section>
  );
}
