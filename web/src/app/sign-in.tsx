// The sign-in page, with the methods that the server offers: a provider, a password, or the server token.

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
  /** Why the sign-in with a provider failed. */
  readonly failure: string | null;
  /** Whether a session has just expired. */
  readonly hasEnded: boolean;
  onSignIn(form: SignInForm): Promise<void>;
}

const FAILURES: Readonly<Record<string, string>> = {
  provider:
    "The sign-in provider is not responding or sent an invalid response. Try again later, or contact an operator.",
  refused: "The sign-in provider refused access.",
  state: "This sign-in was not started in this browser. Please sign in again.",
  nonce: "The provider's response belongs to another sign-in. Please sign in again.",
  proof: "The provider's response could not be verified. Please sign in again.",
  expired: "The sign-in timed out. Please sign in again.",
  claims: "The provider did not send your user name. Please contact an operator.",
  no_role: "Your account has no access to this site. Ask an administrator.",
  other_person: "Your user name belongs to another account here. Ask an administrator.",
};

export function SignIn({ failure, hasEnded, onSignIn }: SignInProps) {
  const session = useSession();
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <Logo />
        <Frame source={session} what="sign-in methods">
          {(methods) => <SignInMethods methods={methods} failure={failure} hasEnded={hasEnded} onSignIn={onSignIn} />}
        </Frame>
      </div>
    </main>
  );
}

function SignInMethods({ methods, failure, hasEnded, onSignIn }: SignInProps & { methods: SessionAnswer }) {
  const { provider, takes_password: takesPassword, takes_token: takesToken } = methods;
  const [wantsToken, setWantsToken] = useState(false);
  const showsToken = takesToken && (wantsToken || !takesPassword);
  return (
    <>
      <p>{hasEnded ? "Your session has expired. Sign in again to continue where you were." : "Sign in to continue."}</p>
      {failure !== null && <ErrorMessage>{FAILURES[failure] ?? "Sign-in failed. Please try again."}</ErrorMessage>}
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
          {wantsToken ? "Use a password instead" : "Use the server token instead"}
        </button>
      )}
      {provider === null && !takesPassword && !takesToken && (
        <p>The proxy in front of this site did not authenticate you. Please contact an operator.</p>
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
        <span>Token from the operator</span>
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
  // The only form of the page gets the focus.
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
        <ErrorMessage>
          {toSentence(problem.message)} {problem.hint}
        </ErrorMessage>
      )}
      <Button look={isPrimary ? "primary" : "plain"} type="submit" disabled={isBusy}>
        Sign in
      </Button>
    </form>
  );
}

function ErrorMessage({ children }: { children: ReactNode }) {
  return (
    <p role="alert" className={styles.problem}>
      {children}
    </p>
  );
}
