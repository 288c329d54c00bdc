import { describe, expect, it } from "vitest";
import type { Startable } from "../../../api/generated.ts";
import { describePlace, findKeyPlace, listPlaces } from "./startable.ts";

const place = (change: Partial<Startable>): Startable => ({
  machine_type: "A100-80G",
  free: 0,
  gpus_per_node: 8,
  one_node_gpus: 0,
  whole_nodes: 0,
  whole_node_gpus: 0,
  smallest_request: null,
  stranded: 0,
  ...change,
});

const partition = (name: string, largest_startable: Startable[], is_up = true) => ({ name, is_up, largest_startable });

const SCATTERED = place({ free: 64, one_node_gpus: 4 });
const ROOMY = place({ free: 24, one_node_gpus: 8, whole_nodes: 3, whole_node_gpus: 24 });

describe("the place that tells most", () => {
  it("is where most is free in vain", () => {
    const places = listPlaces([
      partition("a", [ROOMY]),
      partition("b", [SCATTERED]),
      partition("c", [place({ free: 3 })]),
    ]);
    const chosen = findKeyPlace(places);
    expect(chosen?.partition).toBe("b");
    expect(chosen && describePlace(chosen)).toMatch(/^no 8-GPU job can start although 64.GPUs are free$/);
  });

  it("is where most can start when nothing is scattered", () => {
    const chosen = findKeyPlace(
      listPlaces([partition("a", [ROOMY]), partition("c", [place({ free: 3, one_node_gpus: 3 })])]),
    );
    expect(chosen && [chosen.partition, chosen.largestGpus]).toEqual(["a", 24]);
    expect(findKeyPlace([])).toBeNull();
  });

  it("is not a closed one", () => {
    const [closed] = listPlaces([partition("a", [SCATTERED], false)]);
    expect(closed?.isFragmented).toBe(false);
    expect(closed && describePlace(closed)).toContain("closed");
  });
});
