import { describe, expect, it } from "vitest";
import { joinSpans, placeSpan } from "./span-strip.tsx";

const span = (fromMs: number, toMs: number) => ({ fromMs, toMs });

describe("spans", () => {
  it("are one where they touch or overlap", () => {
    expect(joinSpans([span(5, 7), span(0, 3), span(2, 4), span(7, 9)])).toEqual([span(0, 4), span(5, 9)]);
    expect(joinSpans([])).toEqual([]);
  });

  it("are cut to what is shown", () => {
    expect(placeSpan(span(-10, 5), 0, 10)).toEqual({ left: 0, width: 0.5 });
    expect(placeSpan(span(5, 50), 0, 10)).toEqual({ left: 0.5, width: 0.5 });
    expect(placeSpan(span(20, 30), 0, 10).width).toBe(0);
  });
});
