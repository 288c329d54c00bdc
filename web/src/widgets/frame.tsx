// Shows data from the server, or one of four other states: loading, failed, empty, stale. Used everywhere, so that
// these look the same.

import type { ReactNode } from "react";
import { classNames } from "../base/class-names.ts";
import type { Loadable } from "../base/loadable.ts";
import { type Problem, toSentence } from "../base/problem.ts";
import { Button } from "./button.tsx";
import styles from "./frame.module.css";
import { Icon } from "./icon.tsx";
import { RelativeTime } from "./relative-time.tsx";

interface FrameProps<T> {
  readonly source: Loadable<T>;
  /** What is loading, in one or two words: "workloads". */
  readonly what: string;
  readonly isEmpty?: (value: T) => boolean;
  readonly empty?: ReactNode;
  /** Shown until the content arrives. */
  readonly placeholder?: ReactNode;
  readonly children: (value: T) => ReactNode;
}

export function Frame<T>({ source, what, isEmpty, empty, placeholder, children }: FrameProps<T>) {
  const { value, problem } = source;
  if (value === undefined) {
    if (problem) return <Failed what={what} problem={problem} onRetry={source.retry} />;
    return placeholder ?? <Loading what={what} />;
  }
  return (
    <>
      {problem && <StaleBar problem={problem} receivedAt={source.receivedAt} onRetry={source.retry} />}
      {isEmpty?.(value) ? <Message>{empty}</Message> : children(value)}
    </>
  );
}

interface MessageProps {
  readonly role?: "status" | "alert";
  readonly className?: string | undefined;
  readonly children: ReactNode;
}

/** Words in the place of content that is not there. */
export function Message({ role = "status", className, children }: MessageProps) {
  return (
    <div className={classNames(styles.message, className)} role={role}>
      {children}
    </div>
  );
}

function Loading({ what }: { what: string }) {
  return (
    <Message>
      <span className={styles.pulse} aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      Loading {what}
    </Message>
  );
}

interface TroubleProps {
  readonly problem: Problem;
  onRetry(): void;
}

function Failed({ what, problem, onRetry }: TroubleProps & { what: string }) {
  if (problem.status === NOT_FOUND) return <Missing what={what} problem={problem} />;
  return (
    <Message role="alert">
      <span data-tone="bad">
        <Icon name="alert" size={20} />
      </span>
      <strong>Could not load {what}</strong>
      <span>{toSentence(problem.message)}</span>
      {problem.hint && <span className={styles.hint}>{toSentence(problem.hint)}</span>}
      <Button onClick={onRetry}>
        <Icon name="retry" size={14} /> Try again
      </Button>
    </Message>
  );
}

const NOT_FOUND = 404;

/** Asking again would not help: a link leads to what is not there. */
function Missing({ what, problem }: { what: string; problem: Problem }) {
  return (
    <Message role="alert">
      <strong>Could not find {what}</strong>
      {!problem.message.includes("/api/") && <span>{toSentence(problem.message)}</span>}
      <span className={styles.hint}>It may be older than the retention time, or the link may be wrong.</span>
    </Message>
  );
}

function StaleBar({ problem, receivedAt, onRetry }: TroubleProps & { receivedAt: number }) {
  return (
    <div className={styles.stale} role="status">
      <Icon name="alert" size={14} />
      <span data-tip={problem.hint ?? undefined}>
        Last known state, from <RelativeTime at={receivedAt} />. {toSentence(problem.message)}
      </span>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}
