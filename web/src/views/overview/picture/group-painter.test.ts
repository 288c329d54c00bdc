import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutText } from "./group-painter.ts";
import { textOn } from "./unit-painter.ts";

const measure = (text: string) => Array.from(text).length;

describe("a name that does not fit", () => {
  it("is never wider than its room", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (text, width) => {
        expect(measure(cutText(text, width, measure))).toBeLessThanOrEqual(width);
      }),
    );
  });

  it("is cut between characters, never within one", () => {
    expect(cutText("👩‍👩‍👧‍👦".repeat(40), 30, (text) => text.length)).toBe("");
    expect(cutText("👩‍👩‍👧‍👦".repeat(40), 40, (text) => text.length)).toBe(`${"👩‍👩‍👧‍👦".repeat(3)}…`);
    expect(cutText("e\u0301".repeat(200), 9, (text) => text.length)).toBe(`${"e\u0301".repeat(4)}…`);
  });

  it("ends at its left where it is written from right to left", () => {
    expect(cutText("مشروع-الرؤية", 9, measure)).toBe("\u2068مشروع-…\u2069");
    expect(cutText("مشروع", 9, measure)).toBe("مشروع");
  });

  it("keeps its number, by which it differs from others", () => {
    expect(cutText("A100-80G-4", 8, measure)).toBe("A100-…-4");
    expect(cutText("multimodal", 6, measure)).toBe("multi…");
    expect(cutText("nlp-core", 8, measure)).toBe("nlp-core");
  });

  it("is left out where hardly a letter would be left", () => {
    expect(cutText("multimodal", 3, measure)).toBe("");
  });
});

describe("text in a square", () => {
  it("is dark on light colors and light on dark ones", () => {
    expect(textOn(0xfde725)).toContain("0 0 0");
    expect(textOn(0x440154)).toContain("255 255 255");
  });
});
