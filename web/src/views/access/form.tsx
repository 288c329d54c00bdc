// Forms in the side panel of the access page: heading, fields, error and submit button.

import { type FormEvent, type ReactNode, useState } from "react";
import { type Problem, toProblem, toSentence } from "../../base/problem.ts";
import { Button, IconButton } from "../../widgets/button.tsx";
import { useEscape } from "../../widgets/use-escape.ts";
import styles from "./access.module.css";

export function SideHead({ kind, title, onClose }: { kind: string; title: string; onClose: () => void }) {
  useEscape(onClose);
  return (
    <header className={styles.head}>
      <div>
        <span>{kind}</span>
        <h1>{title}</h1>
      </div>
      <IconButton icon="close" label="Close details" onClick={onClose} />
    </header>
  );
}

interface FormProps {
  readonly action: string;
  readonly children: ReactNode;
  onSubmit(): Promise<void>;
}

export function Form({ action, children, onSubmit }: FormProps) {
  const { problem, isBusy, attempt } = useAttempt();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void attempt(onSubmit);
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      {children}
      <FormError problem={problem} />
      <Button look="primary" type="submit" disabled={isBusy}>
        {action}
      </Button>
    </form>
  );
}

export function FormError({ problem }: { problem: Problem | null }) {
  if (problem === null) return null;
  return (
    <p role="alert" className={styles.problem}>
      {toSentence(problem.message)} {problem.hint}
    </p>
  );
}

/** Runs an action that may fail and keeps its error. */
export function useAttempt() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const attempt = async (action: () => Promise<void>) => {
    setBusy(true);
    setProblem(null);
    try {
      await action();
    } catch (error) {
      setProblem(toProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return { problem, isBusy, attempt };
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly type?: "text" | "password";
  readonly autoComplete?: string;
  readonly isRequired?: boolean;
  readonly minLength?: number;
  readonly hint?: string;
  onChange(value: string): void;
}

export function TextField({
  label,
  value,
  type = "text",
  isRequired = false,
  hint,
  onChange,
  ...rest
}: TextFieldProps) {
  return (
    <label className={styles.field}>
      <span>{label}</span>
      <input
        {...rest}
        type={type}
        required={isRequired}
        spellCheck={false}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      {hint && <small>{hint}</small>}
    </label>
  );
}

interface ChoiceFieldProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly choices: readonly { readonly value: T; readonly title: string }[];
  onChange(value: T): void;
}

export function ChoiceField<T extends string>({ label, value, choices, onChange }: ChoiceFieldProps<T>) {
  return (
    <label className={styles.field}>
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.target.value as T)}>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.title}
          </option>
        ))}
      </select>
    </label>
  );
}
