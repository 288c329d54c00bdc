import { describe, expect, it } from "vitest";
import type { LiveVersion } from "../../api/client.ts";
import { judgeLiveness } from "./live-indicator.tsx";
import { listWarnings } from "./notices.tsx";

const NOW = 1_000_000;
const version = (change: Partial<LiveVersion> = {}): LiveVersion => ({
  inventory_version: 1,
  tick_version: 1,
  rules_version: 1,
  at: NOW,
  newest_sample_at: NOW - 4000,
  paused: null,
  ...change,
});

describe("judgeLiveness", () => {
  it.each([
    ["connecting", { connection: "connecting", version: null }],
    ["live", { connection: "open", version: version() }],
    ["stale", { connection: "open", version: version({ newest_sample_at: NOW - 91_000 }) }],
    ["waiting", { connection: "open", version: version({ newest_sample_at: null }) }],
    ["paused", { connection: "open", version: version({ paused: "the disk is full" }) }],
    ["reconnecting", { connection: "lost", version: version() }],
  ] as const)("is %s", (liveness, state) => {
    expect(judgeLiveness(state, NOW)).toBe(liveness);
  });
});

describe("listWarnings", () => {
  it("says since when the server is silent, but not at every hiccup", () => {
    const lost = { connection: "lost", version: version() } as const;
    expect(listWarnings(lost, NOW + 5000)).toEqual([]);
    expect(listWarnings(lost, NOW + 25_000).join()).toContain("is not responding");
    expect(listWarnings({ ...lost, connection: "open" }, NOW + 25_000)).toEqual([]);
  });

  it("says why nothing is stored", () => {
    const paused = { connection: "open", version: version({ paused: "the disk is full" }) } as const;
    expect(listWarnings(paused, NOW)).toEqual(["No new data is stored. The disk is full."]);
  });
});
