import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { serializeWindow, windowField } from "./window.ts";

describe("the window of the picture in a link", () => {
  const WINDOW = {
    x: 0.5,
    y: 0.25,
    width: 24.5,
    height: 13,
    space: { width: 1168, height: 656 },
    group: ["nlp/core", "ada, b"],
  };

  it("is short and can be read", () => {
    expect(serializeWindow(WINDOW)).toBe("0.5,0.25,24.5,13,1168x656/nlp%2Fcore/ada%2C%20b");
    expect(windowField.parse([serializeWindow(WINDOW)])).toEqual(WINDOW);
    expect(windowField.serialize(null)).toEqual([]);
  });

  it("never breaks the page", () => {
    for (const text of ["", "1,2,3", "0,0,0,4,10x10", "0,0,4,4,0x10", "0,0,4,4,10x10/%", "NaN,0,4,4,10x10"]) {
      expect(windowField.parse([text])).toBeUndefined();
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => windowField.parse([text])).not.toThrow();
      }),
    );
  });
});
