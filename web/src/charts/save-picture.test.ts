import { describe, expect, it } from "vitest";
import { shortenText, wrapText } from "./save-picture.ts";

const measure = (text: string) => text.length * 10;

describe("text of a figure", () => {
  it("is cut with an ellipsis where the page cuts it", () => {
    expect(shortenText("utilization", 60, measure)).toBe("utili…");
    expect(shortenText("power", 60, measure)).toBe("power");
  });

  it("is wrapped between words, and a long word keeps a line", () => {
    expect(wrapText("a bb incomprehensible c", { width: 50, measure })).toEqual(["a bb", "incomprehensible", "c"]);
  });
});
