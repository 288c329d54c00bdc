// Asks who somebody is, by the ways that the server takes: a provider, a password, or its one token.

import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { providerAddress } from "../api/access-client.ts";
import type { SessionAnswer, SignIn as SignInForm } from "../api/generated.ts";
import { type Problem, toProblem, toSentence } from "../base/problem.ts";
import { useSession } from "../data/access.ts";
import { Button } from "../widgets/button.tsx";
import { Frame } from "../widgets/frame.tsx";
import { Logo } from "./shell/logo.tsx";
import styles from "./sign-in.module.css";

interface SignInProps {
  /** Why a provider did not let somebody in. */
  readonly failure: string | null;
  /** Whether they were in until a moment ago. */
  readonly hasEnded: boolean;
  onSignIn(form: SignInForm): Promise<void>;
}

const FAILURES: Readonly<Record<string, string>> = {
  provider: "The sign-in provider does not answer, or not as it should. Try again later, or tell an operator.",
  refused: "The sign-in provider did not let you in.",
  state: "That sign-in was not begun in this browser. Please begin again.",
  nonce: "The provider's answer was to another question. Please begin again.",
  proof: "The provider's answer could not be proven. Please begin again.",
  expired: "Signing in took too long. Please begin again.",
  claims: "The provider did not tell your user name. Please tell an operator.",
  no_role: "You are known, but may not come in. Ask an administrator of this site.",
  other_person: "Your user name belongs to somebody else here. Ask an administrator of this site.",
};

export function SignIn({ failure, hasEnded, onSignIn }: SignInProps) {
  const session = useSession();
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <Logo />
        <Frame source={session} what="ways to sign in">
          {(ways) => <Ways ways={ways} failure={failure} hasEnded={hasEnded} onSignIn={onSignIn} />}
        </Frame>
      </div>
    </main>
  );
}

function Ways({ ways, failure, hasEnded, onSignIn }: SignInProps & { ways: SessionAnswer }) {
  const { provider, takes_password: takesPassword, takes_token: takesToken } = ways;
  const [wantsToken, setWantsToken] = useState(false);
  const showsToken = takesToken && (wantsToken || !takesPassword);
  return (
    <>
      <p>
        {hasEnded
          ? "Your session has ended. Sign in again, and the page goes on where it was."
          : "This site asks who you are."}
      </p>
      {failure !== null && <Complaint>{FAILURES[failure] ?? "Signing in failed. Please begin again."}</Complaint>}
      {provider !== null && (
        <a className={styles.provider} href={providerAddress(`${location.pathname}${location.search}`)}>
          Sign in with {provider}
        </a>
      )}
      {provider !== null && (takesPassword || takesToken) && <p className={styles.or}>or</p>}
      {takesPassword && !showsToken && <PasswordForm isPrimary={provider === null} onSignIn={onSignIn} />}
      {showsToken && <TokenForm isPrimary={provider === null} onSignIn={onSignIn} />}
      {takesPassword && takesToken && (
        <button type="button" className={styles.other} onClick={() => setWantsToken(!wantsToken)}>
          {wantsToken ? "Use a password instead" : "Use the server's token instead"}
        </button>
      )}
      {provider === null && !takesPassword && !takesToken && (
        <p>The proxy in front of this site did not say who you are. Please tell an operator.</p>
      )}
    </>
  );
}

interface FormProps {
  readonly isPrimary: boolean;
  onSignIn(form: SignInForm): Promise<void>;
}

function PasswordForm({ isPrimary, onSignIn }: FormProps) {
  const [login, setLogin] = useState("");
  const [password, setPassword] = useState("");
  return (
    <Form isPrimary={isPrimary} onSubmit={() => onSignIn({ login: login.trim(), password })}>
      <label>
        <span>User name</span>
        <input
          type="text"
          name="username"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          required
          value={login}
          onChange={(event) => setLogin(event.target.value)}
        />
      </label>
      <label>
        <span>Password</span>
        <input
          type="password"
          name="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
      </label>
    </Form>
  );
}

function TokenForm({ isPrimary, onSignIn }: FormProps) {
  const [token, setToken] = useState("");
  return (
    <Form isPrimary={isPrimary} onSubmit={() => onSignIn({ token: token.trim() })}>
      <label>
        <span>Token that the operator gave you</span>
        <input
          type="password"
          autoComplete="current-password"
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
      </label>
    </Form>
  );
}

interface SubmitProps {
  readonly isPrimary: boolean;
  readonly children: ReactNode;
  onSubmit(): Promise<void>;
}

function Form({ isPrimary, children, onSubmit }: SubmitProps) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  // There is nothing else to do here.
  useEffect(() => {
    if (isPrimary) form.current?.querySelector("input")?.focus();
  }, [isPrimary]);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await onSubmit();
    } catch (error) {
      setProblem(toProblem(error));
      setBusy(false);
    }
  };
  return (
    <form ref={form} className={styles.form} onSubmit={submit}>
      {children}
      {problem && (
        <Complaint>
          {toSentence(problem.message)} {problem.hint}
        </Complaint>
      )}
      <Button look={isPrimary ? "primary" : "plain"} type="submit" disabled={isBusy}>
        Sign in
      </Button>
    </form>
  );
}

function Complaint({ children }: { children: ReactNode }) {
  return (
    <p role="alert" className={styles.problem}>
      {children}
    </p>
  );
}
