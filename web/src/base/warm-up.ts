// What the server said last of its own warming up; forgotten when it says nothing more.

/** Longer than the server lets requests wait before they are sent again. */
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
