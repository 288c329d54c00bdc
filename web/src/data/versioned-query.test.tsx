// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, render, screen, waitFor } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { LiveVersion } from "../api/client.ts";
import type { ClusterSummary } from "../api/generated.ts";
import { createStaticClient } from "../api/static-client.ts";
import { createClock } from "../base/clock.ts";
import { Problem } from "../base/problem.ts";
import { createLiveStore } from "./live-store.ts";
import { useCluster } from "./queries.ts";
import { ServicesContext } from "./services.ts";

afterEach(cleanup);

const version = (tick: number): LiveVersion => ({
  inventory_version: 1,
  tick_version: tick,
  rules_version: 1,
  at: Date.now(),
  newest_sample_at: null,
  paused: null,
});

function Power() {
  const { value, problem } = useCluster();
  return <p>{problem?.message ?? value?.power_watts ?? "nothing yet"}</p>;
}

/** Two components that show the same, and a server whose answers wait until let go. */
function setUp() {
  const waiting: ((answer: Promise<ClusterSummary>) => void)[] = [];
  const cluster = vi.fn(() => new Promise<ClusterSummary>((resolve) => waiting.push(resolve)));
  const client = createStaticClient({ cluster });
  const clock = createClock(Date.now);
  const live = createLiveStore(client, clock);
  const queries = new QueryClient({
    defaultOptions: { queries: { retry: false, staleTime: Number.POSITIVE_INFINITY } },
  });
  render(
    <QueryClientProvider client={queries}>
      <ServicesContext value={{ client, live, clock }}>
        <Power />
        <Power />
      </ServicesContext>
    </QueryClientProvider>,
  );
  const answer = (power_watts: number) =>
    act(async () => waiting.shift()?.(Promise.resolve({ power_watts } as ClusterSummary)));
  const fail = () => act(async () => waiting.shift()?.(Promise.reject(new Problem("it is down", { code: "x" }))));
  const announce = (tick: number) => act(async () => client.announce(version(tick)));
  return { cluster, answer, fail, announce };
}

describe("useVersionedQuery", () => {
  it("asks once for all who show it", async () => {
    const { cluster, answer } = setUp();
    await answer(5);
    expect(await screen.findAllByText("5")).toHaveLength(2);
    expect(cluster).toHaveBeenCalledTimes(1);
  });

  it("asks once more, not once per change, when much happened on the way", async () => {
    const { cluster, answer, announce } = setUp();
    for (const tick of [1, 2, 3, 4]) await announce(tick);
    expect(cluster).toHaveBeenCalledTimes(1);
    await answer(5);
    await waitFor(() => expect(cluster).toHaveBeenCalledTimes(2));
    await answer(6);
    expect(await screen.findAllByText("6")).toHaveLength(2);
    await announce(4);
    expect(cluster).toHaveBeenCalledTimes(2);
  });

  it("tries again when the server responds again", async () => {
    const { cluster, answer, fail, announce } = setUp();
    await fail();
    expect(await screen.findAllByText("it is down")).toHaveLength(2);
    expect(cluster).toHaveBeenCalledTimes(1);
    await announce(1);
    await waitFor(() => expect(cluster).toHaveBeenCalledTimes(2));
    await answer(7);
    expect(await screen.findAllByText("7")).toHaveLength(2);
  });
});
