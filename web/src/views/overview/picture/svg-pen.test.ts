// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { SvgPen } from "./svg-pen.ts";

function makePen() {
  return new SvgPen((text) => ({ width: text.length * 6 }) as TextMetrics);
}

function parse(text: string): Document {
  return new DOMParser().parseFromString(text, "image/svg+xml");
}

describe("a picture as SVG", () => {
  it("has one path for all that is drawn together", () => {
    const pen = makePen();
    pen.beginPath();
    pen.rect(1, 2, 3, 3);
    pen.rect(6, 2, 3, 3);
    pen.fillStyle = "#123456";
    pen.globalAlpha = 0.5;
    pen.fill();
    const [path, ...others] = parse(pen.toText(20, 10, "#fff", "t")).querySelectorAll("path");
    expect(others).toEqual([]);
    expect(path?.getAttribute("d")).toBe("M1 2h3v3h-3zM6 2h3v3h-3z");
    expect(path?.getAttribute("fill")).toBe("#123456");
    expect(path?.getAttribute("opacity")).toBe("0.5");
  });

  it("draws lines from place to place", () => {
    const pen = makePen();
    pen.beginPath();
    pen.moveTo(1, 2);
    pen.lineTo(3.001, 4);
    pen.strokeStyle = "#123456";
    pen.stroke();
    const path = parse(pen.toText(20, 10, "#fff", "t")).querySelector("path");
    expect([path?.getAttribute("d"), path?.getAttribute("stroke")]).toEqual(["M1 2L3 4", "#123456"]);
  });

  it("holds any name as it is, and leaves out what XML cannot hold", () => {
    const pen = makePen();
    pen.font = "600 13px Inter";
    pen.fillText('a<b> & "c" \u0001 مرحبا 🚀', 1, 2);
    const document = parse(pen.toText(20, 10, "#fff", "<title> & more"));
    expect(document.querySelector("parsererror")).toBeNull();
    const text = document.querySelector("text");
    expect(text?.textContent).toBe('a<b> & "c"  مرحبا 🚀');
    expect(text?.getAttribute("font-weight")).toBe("600");
    expect(document.querySelector("title")?.textContent).toBe("<title> & more");
  });

  it("turns only the text that is to be turned", () => {
    const pen = makePen();
    pen.save();
    pen.translate(5, 6);
    pen.rotate(-Math.PI / 2);
    pen.fillText("up", 0, 0);
    pen.restore();
    pen.fillText("along", 0, 0);
    const [up, along] = parse(pen.toText(20, 10, "#fff", "t")).querySelectorAll("text");
    expect(up?.getAttribute("transform")).toBe("translate(5 6) rotate(-90)");
    expect(along?.getAttribute("transform")).toBeNull();
  });

  it("rounds corners no more than a box has room for", () => {
    const pen = makePen();
    pen.beginPath();
    pen.roundRect(0, 0, 10, 4, 8);
    pen.stroke();
    expect(
      parse(pen.toText(20, 10, "#fff", "t"))
        .querySelector("path")
        ?.getAttribute("d"),
    ).toContain("a2 2 0 0 1 2 2");
  });
});
