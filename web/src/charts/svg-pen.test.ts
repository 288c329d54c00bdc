import { describe, expect, it } from "vitest";
import { SvgPen } from "./svg-pen.ts";

function draw(paint: (pen: SvgPen) => void): string {
  const pen = new SvgPen("c", (text) => text.length * 6, 10, 20);
  paint(pen);
  return pen.finish();
}

describe("a pen that writes SVG", () => {
  it("joins shapes of one look into one path", () => {
    const text = draw((pen) => {
      pen.fillStyle = "red";
      pen.fillRect(0, 0, 2, 2);
      pen.fillRect(4, 0, 2, 2);
      pen.globalAlpha = 0.5;
      pen.fillRect(8, 0, 2, 2);
    });
    expect(text).toBe(
      '<path fill="red" d="M10 20h2v2h-2zM14 20h2v2h-2z"/><path fill="red" opacity="0.5" d="M18 20h2v2h-2z"/>',
    );
  });

  it("keeps lines, dashes, clips and moves as a canvas does", () => {
    const text = draw((pen) => {
      pen.save();
      pen.beginPath();
      pen.rect(0, 0, 5, 5);
      pen.clip();
      pen.translate(1, 1);
      pen.setLineDash([3, 2]);
      pen.beginPath();
      pen.moveTo(0, 0);
      pen.lineTo(3, 4);
      pen.stroke();
      pen.restore();
      pen.beginPath();
      pen.arc(0, 0, 2);
      pen.fill();
    });
    expect(text).toContain('<clipPath id="c-0"><path d="M10 20h5v5h-5z"/></clipPath>');
    expect(text).toContain('stroke-dasharray="3 2" clip-path="url(#c-0)" d="M11 21L14 25"');
    expect(text).toContain('<path fill="#000" d="M8 20a2 2');
  });

  it("escapes what is written", () => {
    expect(draw((pen) => pen.fillText("a<b & c", 0, 0))).toContain(">a&lt;b &amp; c</text>");
  });
});
