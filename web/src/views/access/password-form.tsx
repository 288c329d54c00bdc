// Changing one's own password.

import { useState } from "react";
import { useAccessChange } from "../../data/access.ts";
import { Button } from "../../widgets/button.tsx";
import styles from "./access.module.css";
import { Form, TextField } from "./form.tsx";

export function PasswordForm({ minLength }: { minLength: number }) {
  const change = useAccessChange();
  const [isOpen, setOpen] = useState(false);
  const [isDone, setDone] = useState(false);
  const [old, setOld] = useState("");
  const [password, setPassword] = useState("");
  const save = async () => {
    await change((client) => client.changePassword(old, password));
    setOld("");
    setPassword("");
    setOpen(false);
    setDone(true);
  };
  return (
    <section className={styles.own} aria-label="My password">
      <h2>My password</h2>
      {isDone && <p role="status">Changed. You are signed out in every other browser.</p>}
      {isOpen ? (
        <Form action="Change" onSubmit={save}>
          <TextField
            label="Old password"
            type="password"
            autoComplete="current-password"
            isRequired
            value={old}
            onChange={setOld}
          />
          <TextField
            label="New password"
            type="password"
            autoComplete="new-password"
            isRequired
            minLength={minLength}
            hint={`${minLength} characters or more`}
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
