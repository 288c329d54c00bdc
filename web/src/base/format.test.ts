import { describe, expect, it } from "vitest";
import { formatBytes, formatCount, formatPlural, formatQuantity, formatRatio, formatWatts } from "./format.ts";

/** Units are joined by a no-break space; tests read better without. */
const plain = (text: string) => text.replaceAll("\u00a0", " ");

describe("formats", () => {
  it("show what is missing as missing, never as 0", () => {
    for (const format of [formatCount, formatRatio, formatWatts, formatBytes]) {
      expect([null, undefined, Number.NaN, Number.POSITIVE_INFINITY].map(format)).toEqual(["–", "–", "–", "–"]);
    }
  });

  it.each([
    [0, "0 %"],
    [0.001, "<1 %"],
    [0.614, "61 %"],
    [1, "100 %"],
    [1.02, "102 %"],
  ])("show the ratio %d as %s", (ratio, text) => expect(plain(formatRatio(ratio))).toBe(text));

  it.each([
    [0, "0 W"],
    [248.4, "248 W"],
    [999.4, "999 W"],
    [999.9, "1.0 kW"],
    [15_230, "15.2 kW"],
    [312_000, "312 kW"],
    [1_250_000, "1.3 MW"],
  ])("show %d watts as %s", (watts, text) => expect(plain(formatWatts(watts))).toBe(text));

  it.each([
    [512, "512 B"],
    [80 * 2 ** 30, "80.0 GiB"],
    [141.2 * 2 ** 30, "141 GiB"],
    [2 ** 40, "1.0 TiB"],
  ])("show %d bytes as %s", (bytes, text) => expect(plain(formatBytes(bytes))).toBe(text));

  it("group thousands and count in words", () => {
    expect(formatCount(10_240)).toBe("10,240");
    expect(plain(formatPlural(1, "GPU"))).toBe("1 GPU");
    expect(plain(formatPlural(1024, "GPU"))).toBe("1,024 GPUs");
  });

  it("know every unit of the catalogue", () => {
    expect(plain(formatQuantity(71.6, "celsius"))).toBe("72 °C");
    expect(plain(formatQuantity(1.98e9, "hertz"))).toBe("2.0 GHz");
    expect(plain(formatQuantity(25e9, "bytes_per_second"))).toBe("25.0 GB/s");
    expect(formatQuantity(null, "joules")).toBe("–");
  });
});
