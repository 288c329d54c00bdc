// An error, in the shape that the server and the page share: a message that says what is wrong and a hint that says
// what to do.

export class Problem extends Error {
  readonly code: string;
  readonly hint: string | null;
  /** The HTTP status; null: no response. */
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

/** Whether the server requires sign-in. */
export function isSignInNeeded(error: unknown): boolean {
  return error instanceof Problem && error.status === 401;
}

/** Makes a sentence of a message: first letter in upper case, full stop at the end. */
export function toSentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}
