import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createClock } from "./clock.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("the clock", () => {
  it("ticks while somebody listens and not longer", () => {
    const clock = createClock(Date.now);
    const listener = vi.fn();
    const stop = clock.subscribe(listener);
    vi.advanceTimersByTime(3000);
    expect(listener).toHaveBeenCalledTimes(3);
    stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("says the same until it ticks, so that a render is of one moment", () => {
    const clock = createClock(Date.now);
    clock.subscribe(() => {});
    const before = clock.now();
    vi.advanceTimersByTime(999);
    expect(clock.now()).toBe(before);
    vi.advanceTimersByTime(1);
    expect(clock.now()).toBe(before + 1000);
  });

  it("takes over the server's time where this machine's is wrong", () => {
    const clock = createClock(() => 1_000_000);
    clock.adjust(1_000_500);
    expect(clock.now()).toBe(1_000_000);
    clock.adjust(1_060_000);
    expect(clock.now()).toBe(1_060_000);
  });
});
