import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LiveVersion } from "./client.ts";
import { listenToEvents } from "./live.ts";

const VERSION: LiveVersion = {
  inventory_version: 1,
  tick_version: 1,
  rules_version: 1,
  at: 0,
  newest_sample_at: null,
  paused: null,
};

/** What `listenToEvents` uses of an EventSource, driven by hand. */
class Line {
  readyState = 1;
  onerror: (() => void) | null = null;
  listener: ((event: { data: string }) => void) | null = null;
  addEventListener(_name: string, listener: (event: { data: string }) => void) {
    this.listener = listener;
  }
  close() {
    this.readyState = 2;
  }
  say(version: LiveVersion) {
    this.listener?.({ data: JSON.stringify(version) });
  }
  refuse() {
    this.readyState = 2;
    this.onerror?.();
  }
}

let lines: Line[];
const listener = { onVersion: vi.fn(), onLost: vi.fn() };
const open = () => {
  const line = new Line();
  lines.push(line);
  return line as unknown as EventSource;
};

beforeEach(() => {
  vi.useFakeTimers();
  vi.clearAllMocks();
  lines = [];
});
afterEach(() => vi.useRealTimers());

describe("listenToEvents", () => {
  it("passes on what the server says", () => {
    const stop = listenToEvents("/live", listener, open);
    lines[0]?.say(VERSION);
    expect(listener.onVersion).toHaveBeenCalledWith(VERSION);
    stop();
    expect(lines[0]?.readyState).toBe(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("leaves short breaks to the browser", () => {
    listenToEvents("/live", listener, open);
    lines[0]?.onerror?.();
    vi.advanceTimersByTime(5000);
    expect(listener.onLost).toHaveBeenCalledOnce();
    expect(lines).toHaveLength(1);
  });

  it("reopens with growing delays when the browser has given up", () => {
    listenToEvents("/live", listener, open);
    lines[0]?.refuse();
    vi.advanceTimersByTime(1000);
    expect(lines).toHaveLength(2);
    lines[1]?.refuse();
    vi.advanceTimersByTime(1000);
    expect(lines).toHaveLength(2);
    vi.advanceTimersByTime(1000);
    expect(lines).toHaveLength(3);
  });

  it("reopens a connection that has gone silent", () => {
    listenToEvents("/live", listener, open);
    lines[0]?.say(VERSION);
    vi.advanceTimersByTime(39_000);
    expect(lines).toHaveLength(1);
    vi.advanceTimersByTime(1000);
    expect(lines).toHaveLength(2);
    expect(lines[0]?.readyState).toBe(2);
  });
});
