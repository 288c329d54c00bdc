// What went wrong, in the one shape the server and the page use: a message that says what, and a hint what to do.

export class Problem extends Error {
  readonly code: string;
  readonly hint: string | null;
  /** The HTTP status; null where no answer came. */
  readonly status: number | null;

  constructor(message: string, options: { code: string; hint?: string | null; status?: number | null }) {
    super(message);
    this.name = "Problem";
    this.code = options.code;
    this.hint = options.hint ?? null;
    this.status = options.status ?? null;
  }
}

export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Problem(message, { code: "client", hint: "Reload the page; if it happens again, please report it." });
}

/** Whether the server wants to know who asks. */
export function isSignInNeeded(error: unknown): boolean {
  return error instanceof Problem && error.status === 401;
}

/** Messages come in both habits; on the page they are sentences. */
export function toSentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}
