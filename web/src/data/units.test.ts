import { describe, expect, it, vi } from "vitest";
import type { Snapshot } from "../api/snapshot.ts";
import type { Tick } from "../api/tick.ts";
import { fetchUnits } from "./units.ts";

const snapshot = (inventoryVersion: number) => ({ inventoryVersion, rowCount: 4 }) as Snapshot;
const tick = (inventoryVersion: number) => ({ inventoryVersion, rowCount: 4 }) as Tick;

function clientOf(snapshots: number[], ticks: number[]) {
  return {
    snapshot: vi.fn(async () => snapshot(snapshots.shift() ?? 0)),
    tick: vi.fn(async () => tick(ticks.shift() ?? 0)),
  };
}

describe("fetchUnits", () => {
  it("keeps the snapshot it holds while the inventory stays", async () => {
    const client = clientOf([], [3]);
    const held = { snapshot: snapshot(3), tick: tick(3) };
    const units = await fetchUnits(client, [], held);
    expect(units.snapshot).toBe(held.snapshot);
    expect(client.snapshot).not.toHaveBeenCalled();
  });

  it("fetches the snapshot when the tick is of a newer inventory", async () => {
    const client = clientOf([4], [4]);
    const units = await fetchUnits(client, [], { snapshot: snapshot(3), tick: tick(3) });
    expect(units).toMatchObject({ snapshot: { inventoryVersion: 4 }, tick: { inventoryVersion: 4 } });
    expect(client.tick).toHaveBeenCalledOnce();
  });

  it("fetches the tick again when the inventory changed in between", async () => {
    const client = clientOf([5], [4, 5]);
    const units = await fetchUnits(client, []);
    expect(units.tick?.inventoryVersion).toBe(5);
  });

  it("starts over when the server was restarted and counts from the beginning", async () => {
    const client = clientOf([1], [1]);
    const units = await fetchUnits(client, [], { snapshot: snapshot(90), tick: tick(90) });
    expect(units).toMatchObject({ snapshot: { inventoryVersion: 1 }, tick: { inventoryVersion: 1 } });
  });

  it("shows no metrics rather than those of other units", async () => {
    const client = clientOf([2, 4, 6, 8], [1, 3, 5, 7, 9]);
    expect((await fetchUnits(client, [])).tick).toBeNull();
  });

  it("keeps the units it holds, with their metrics, while the inventory changes faster than it can be fetched", async () => {
    const held = { snapshot: snapshot(1), tick: tick(1) };
    expect(await fetchUnits(clientOf([2, 4, 6, 8], [3, 5, 7, 9]), [], held)).toBe(held);
  });
});
