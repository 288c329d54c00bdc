import fc from "fast-check";
import { expect, it } from "vitest";
import { sortFloats } from "./sort-floats.ts";

it("sorts as the built-in sort does, and leaves what it was given as it was", () => {
  fc.assert(
    fc.property(fc.array(fc.float({ noNaN: true })), (list) => {
      const values = Float32Array.from(list);
      expect(sortFloats(values)).toEqual(Float32Array.from(list).sort());
      expect(values).toEqual(Float32Array.from(list));
    }),
  );
});
