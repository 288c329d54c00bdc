// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { SvgPen, writeSvgDocument } from "./pen.ts";

function draw(paint: (pen: SvgPen) => void, x = 10, y = 20): string {
  const pen = new SvgPen((text) => text.length * 6, { name: "c", x, y });
  paint(pen);
  return pen.finish();
}

/** As a document on its own. */
function parse(paint: (pen: SvgPen) => void, title = "t"): Document {
  const text = writeSvgDocument({ width: 20, height: 10, title, background: "#fff", color: "#000" }, [
    draw(paint, 0, 0),
  ]);
  return new DOMParser().parseFromString(text, "image/svg+xml");
}

describe("a pen that writes SVG", () => {
  it("joins rectangles of one look into one path", () => {
    const text = draw((pen) => {
      pen.fillStyle = "red";
      pen.fillRect(0, 0, 2, 2);
      pen.fillRect(4, 0, 2, 2);
      pen.globalAlpha = 0.5;
      pen.fillRect(8, 0, 2, 2);
    });
    expect(text).toBe(
      '<path fill="red" d="M10 20h2v2h-2zM14 20h2v2h-2z"/>\n<path fill="red" opacity="0.5" d="M18 20h2v2h-2z"/>',
    );
  });

  it("has one path for all that is drawn together", () => {
    const [path, ...others] = parse((pen) => {
      pen.beginPath();
      pen.rect(1, 2, 3, 3);
      pen.rect(6, 2, 3, 3);
      pen.fillStyle = "#123456";
      pen.globalAlpha = 0.5;
      pen.fill();
    }).querySelectorAll("path");
    expect(others).toEqual([]);
    expect(path?.getAttribute("d")).toBe("M1 2h3v3h-3zM6 2h3v3h-3z");
    expect(path?.getAttribute("fill")).toBe("#123456");
    expect(path?.getAttribute("opacity")).toBe("0.5");
  });

  it("keeps paths apart, so that those that shine through one another do", () => {
    const paths = parse((pen) => {
      pen.globalAlpha = 0.5;
      for (const side of [8, 4]) {
        pen.beginPath();
        pen.rect(0, 0, side, side);
        pen.fill();
      }
    }).querySelectorAll("path");
    expect(paths).toHaveLength(2);
  });

  it("draws lines from place to place", () => {
    const path = parse((pen) => {
      pen.beginPath();
      pen.moveTo(1, 2);
      pen.lineTo(3.001, 4);
      pen.strokeStyle = "#123456";
      pen.stroke();
    }).querySelector("path");
    expect([path?.getAttribute("d"), path?.getAttribute("stroke")]).toEqual(["M1 2L3 4", "#123456"]);
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

  it("holds any name as it is, and leaves out what XML cannot hold", () => {
    const document = parse((pen) => {
      pen.font = "600 13px Inter";
      pen.fillText('a<b> & "c" \u0001 مرحبا 🚀', 1, 2);
    }, "<title> & more");
    expect(document.querySelector("parsererror")).toBeNull();
    const text = document.querySelector("text");
    expect(text?.textContent).toBe('a<b> & "c"  مرحبا 🚀');
    expect(text?.getAttribute("font-weight")).toBe("600");
    expect(document.querySelector("title")?.textContent).toBe("<title> & more");
  });

  it("turns only the text that is to be turned", () => {
    const [up, along] = parse((pen) => {
      pen.save();
      pen.translate(5, 6);
      pen.rotate(-Math.PI / 2);
      pen.fillText("up", 0, 0);
      pen.restore();
      pen.fillText("along", 0, 0);
    }).querySelectorAll("text");
    expect(up?.getAttribute("transform")).toBe("translate(5 6) rotate(-90)");
    expect(along?.getAttribute("transform")).toBeNull();
  });

  it("writes text from its middle or its end where it is aligned so", () => {
    const texts = parse((pen) => {
      pen.textAlign = "center";
      pen.fillText("middle", 5, 5);
      pen.textAlign = "right";
      pen.fillText("end", 5, 5);
    }).querySelectorAll("text");
    expect([...texts].map((text) => text.getAttribute("text-anchor"))).toEqual(["middle", "end"]);
  });

  it("rounds corners no more than a box has room for", () => {
    const path = parse((pen) => {
      pen.beginPath();
      pen.roundRect(0, 0, 10, 4, 8);
      pen.stroke();
    }).querySelector("path");
    expect(path?.getAttribute("d")).toContain("a2 2 0 0 1 2 2");
  });
});
