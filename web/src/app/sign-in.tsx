// Asks for the token where the server wants one.

import { type FormEvent, useState } from "react";
import { type Problem, toProblem, toSentence } from "../base/problem.ts";
import { Button } from "../widgets/button.tsx";
import { Logo } from "./shell/logo.tsx";
import styles from "./sign-in.module.css";

export function SignIn({ onSignIn }: { onSignIn: (token: string) => Promise<void> }) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await onSignIn(token.trim());
    } catch (error) {
      setProblem(toProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className={styles.page}>
      <form className={styles.form} onSubmit={submit}>
        <Logo />
        <p>This server asks who you are. Enter the token its operator gave you.</p>
        <label>
          <span>Token</span>
          <input
            type="password"
            autoComplete="current-password"
            required
            value={token}
            aria-invalid={problem !== null}
            aria-describedby={problem ? "sign-in-problem" : undefined}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {problem && (
          <p id="sign-in-problem" role="alert" className={styles.problem}>
            {toSentence(problem.message)} {problem.hint}
          </p>
        )}
        <Button look="primary" type="submit" disabled={isBusy}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
