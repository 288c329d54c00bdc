import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type History, MAX_STEPS, NO_HISTORY, record, redo, undo } from "./history.ts";

describe("a history", () => {
  it("goes back and forth through the steps", () => {
    const two = record(record(NO_HISTORY as History<string>, "a"), "b");
    const back = undo(two, "c");
    expect(back?.present).toBe("b");
    expect(back && undo(back.history, back.present)?.present).toBe("a");
    expect(back && redo(back.history, back.present)).toEqual({ history: two, present: "c" });
  });

  it("has nothing before the first step and nothing after the last", () => {
    expect(undo(NO_HISTORY, "a")).toBeNull();
    expect(redo(record(NO_HISTORY as History<string>, "a"), "b")).toBeNull();
  });

  it("forgets what was undone when another step is taken", () => {
    const back = undo(record(NO_HISTORY as History<string>, "a"), "b");
    expect(back && record(back.history, back.present).future).toEqual([]);
  });

  it("keeps no more steps than it may", () => {
    let history: History<number> = NO_HISTORY;
    for (let step = 0; step < 3 * MAX_STEPS; step += 1) history = record(history, step);
    expect(history.past).toHaveLength(MAX_STEPS);
    expect(history.past.at(-1)).toBe(3 * MAX_STEPS - 1);
  });

  it("ends where it began after as many steps forth as back", () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { minLength: 1, maxLength: MAX_STEPS }), fc.nat(), (steps, times) => {
        let history: History<number> = NO_HISTORY;
        for (const step of steps.slice(0, -1)) history = record(history, step);
        let present = steps.at(-1) ?? 0;
        const goal = present;
        const back = times % steps.length;
        for (let time = 0; time < back; time += 1) {
          const moved = undo(history, present);
          if (moved) ({ history, present } = moved);
        }
        expect(present).toBe(steps[steps.length - 1 - back]);
        for (let time = 0; time < back; time += 1) {
          const moved = redo(history, present);
          if (moved) ({ history, present } = moved);
        }
        expect(present).toBe(goal);
      }),
    );
  });
});
