// The server-sent event stream of versions. EventSource reconnects after short interruptions; this reopens the stream
// if EventSource gives up or the connection goes silent.

import type { LiveListener, LiveVersion } from "./client.ts";

/** The server sends a heartbeat every 15 s; after two missed ones the connection is considered dead. */
const SILENCE_MS = 40_000;
const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 15_000;

export function listenToEvents(
  address: string,
  listener: LiveListener,
  open: (address: string) => EventSource = (url) => new EventSource(url),
): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let delayMs = FIRST_DELAY_MS;

  const start = () => {
    source?.close();
    source = open(address);
    source.addEventListener("version", (event: MessageEvent<string>) => {
      delayMs = FIRST_DELAY_MS;
      later(start, SILENCE_MS);
      listener.onVersion(JSON.parse(event.data) as LiveVersion);
    });
    source.onerror = () => {
      listener.onLost();
      if (source?.readyState === EVENT_SOURCE_CLOSED) {
        later(start, delayMs);
        delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
      }
    };
    later(start, SILENCE_MS);
  };
  const later = (action: () => void, waitMs: number) => {
    clearTimeout(timer);
    timer = setTimeout(action, waitMs);
  };

  start();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}

/** `EventSource.CLOSED`, defined here because tests have no EventSource. */
const EVENT_SOURCE_CLOSED = 2;
