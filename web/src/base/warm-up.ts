// The server's last message about its warm-up; cleared when no more arrive.

/** Longer than the interval between retries. */
const FORGET_AFTER_MS = 8_000;

let message: string | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

export function noteWarmUp(text: string): void {
  clearTimeout(timer);
  timer = setTimeout(() => set(null), FORGET_AFTER_MS);
  set(text);
}

export function readWarmUp(): string | null {
  return message;
}

export function subscribeWarmUp(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function set(text: string | null): void {
  message = text;
  for (const listener of listeners) listener();
}
