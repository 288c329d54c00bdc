import { describe, expect, it } from "vitest";
import { markShown } from "./shown-units.ts";

const states = { codes: [0, 1, 1, 1, 1], names: ["allocated", "requested"] };
const workloads = { codes: [1, 1, 2, 2, 3], names: [null, "a", "b", "c"] };

describe("the rows that a view shows", () => {
  it.each([
    ["all", [1, 1, 1, 1, 1]],
    ["gpus", [1, 0, 0, 0, 0]],
    ["requested", [0, 1, 1, 1, 1]],
    ["waiting", [0, 1, 1, 0, 1]],
  ] as const)("are %s", (shown, marks) => {
    expect([...markShown(shown, 5, states, workloads)]).toEqual(marks);
  });

  it("are no requested ones where nothing is known", () => {
    expect([...markShown("requested", 2, null, null)]).toEqual([0, 0]);
    expect([...markShown("gpus", 2, null, null)]).toEqual([1, 1]);
  });
});
