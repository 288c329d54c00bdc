import { describe, expect, it, vi } from "vitest";
import type { LiveVersion } from "../api/client.ts";
import { createStaticClient } from "../api/static-client.ts";
import { createClock } from "../base/clock.ts";
import { createLiveStore } from "./live-store.ts";

const version = (tick: number): LiveVersion => ({
  inventory_version: 1,
  tick_version: tick,
  rules_version: 1,
  at: Date.now(),
  newest_sample_at: null,
  paused: null,
});

function setUp() {
  const client = createStaticClient({});
  const live = createLiveStore(client, createClock(Date.now));
  live.subscribe(() => {});
  return { client, live };
}

describe("a page that is held", () => {
  it("goes on showing the version of then, hears what comes, and catches up", () => {
    const { client, live } = setUp();
    client.announce(version(1));
    live.pause();
    client.announce(version(2));
    expect(live.read()).toMatchObject({
      version: { tick_version: 2 },
      followed: { tick_version: 1 },
      receivedCount: 2,
    });
    expect(live.read().pausedAt).not.toBeNull();
    live.resume();
    expect(live.read()).toMatchObject({ followed: { tick_version: 2 }, pausedAt: null });
  });
});

describe("changes under the pointer", () => {
  it("wait until it rests, but not for ever", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const { live } = setUp();
    const done = vi.fn();
    await live.untilCalm(new AbortController().signal);
    live.touch();
    void live.untilCalm(new AbortController().signal).then(done);
    await vi.advanceTimersByTimeAsync(900);
    expect(done).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(300);
    expect(done).toHaveBeenCalledOnce();
    const restless = setInterval(live.touch, 50);
    const late = vi.fn();
    live.touch();
    void live.untilCalm(new AbortController().signal).then(late);
    for (let step = 0; step < 45; step += 1) {
      live.touch();
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(late).toHaveBeenCalledOnce();
    clearInterval(restless);
    vi.useRealTimers();
  });
});
