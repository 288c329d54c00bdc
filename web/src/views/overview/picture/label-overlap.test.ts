import { describe, expect, it } from "vitest";
import type { Pen } from "../../../charts/pen.ts";
import { BUILTIN_VIEWS } from "../../../layout/builtin-views.ts";
import { makeSyntheticUnits } from "../../../layout/synthetic-units.ts";
import { fitScale } from "./camera.ts";
import { layoutToFit } from "./fit-layout.ts";
import { paintGroups } from "./group-painter.ts";
import type { Tokens } from "./tokens.ts";

const tokens: Tokens = { bg: 0, panel: 1, raised: 2, line: 3, text: 4, muted: 5, faint: 6, accent: 7, bad: 8 };
const ZOOMS = [1, 1.4, 2, 3.3, 6, 14, 40];
/** Of the font's size: a generous letter, and the heights of Inter above and below the line. */
const [LETTER, ABOVE, BELOW] = [0.6, 0.74, 0.21];

interface Written {
  readonly text: string;
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** A pen that remembers where text is; it knows of turning by a quarter, and nothing else. */
function makePen(): { readonly pen: Pen; readonly written: readonly Written[] } {
  const written: Written[] = [];
  let [x, y, isTurned] = [0, 0, false];
  const sizeOf = ({ font }: { font: string }) => Number(/([\d.]+)px/.exec(font)?.[1] ?? 0);
  const nothing = () => {};
  const pen = {
    font: "",
    fillStyle: "",
    strokeStyle: "",
    lineWidth: 1,
    globalAlpha: 1,
    textBaseline: "alphabetic",
    beginPath: nothing,
    rect: nothing,
    roundRect: nothing,
    fill: nothing,
    stroke: nothing,
    save: nothing,
    restore() {
      [x, y, isTurned] = [0, 0, false];
    },
    translate(byX: number, byY: number) {
      [x, y] = [x + byX, y + byY];
    },
    rotate() {
      isTurned = true;
    },
    measureText(text: string) {
      return { width: Array.from(text).length * LETTER * sizeOf(pen) };
    },
    fillText(text: string, left: number, baseline: number) {
      const [size, width] = [sizeOf(pen), pen.measureText(text).width];
      written.push(
        isTurned
          ? { text, left: x - ABOVE * size, right: x + BELOW * size, top: y - width, bottom: y }
          : { text, left, right: left + width, top: baseline - ABOVE * size, bottom: baseline + BELOW * size },
      );
    },
  };
  return { pen: pen as unknown as Pen, written };
}

function findOverlap(written: readonly Written[]): string | null {
  const ordered = [...written].sort((a, b) => a.top - b.top);
  for (let at = 0; at < ordered.length; at += 1) {
    const a = ordered[at];
    for (let next = at + 1; a && next < ordered.length; next += 1) {
      const b = ordered[next];
      if (!b || b.top >= a.bottom - 0.5) break;
      if (a.left < b.right - 0.5 && b.left < a.right - 0.5) return `${a.text} and ${b.text}`;
    }
  }
  return null;
}

describe("names of groups", () => {
  const columns = makeSyntheticUnits(2000);
  const cases = BUILTIN_VIEWS.flatMap(({ title, view }) =>
    [
      { width: 1130, height: 630 },
      { width: 760, height: 520 },
      { width: 380, height: 420 },
    ].map((space) => ({ title, view, space })),
  );

  it.each(cases)("never lie on one another, however near: $title at $space.width px", ({ view, space }) => {
    const layout = layoutToFit({ view, columns, space });
    const fit = fitScale(layout.bounds, space);
    let named = 0;
    for (const zoom of ZOOMS) {
      for (const part of [0, 0.37, 0.8]) {
        const scale = fit * zoom;
        const camera = { scale, offsetX: -part * layout.bounds.width * scale, offsetY: 0 };
        const { pen, written } = makePen();
        paintGroups(pen, layout, camera, space, tokens);
        expect(findOverlap(written), `zoomed ${zoom} times`).toBeNull();
        named += written.length;
      }
    }
    expect(named).toBeGreaterThan(20);
  });
});
