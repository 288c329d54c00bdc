import { describe, expect, it } from "vitest";
import { formatCsv } from "./csv.ts";

describe("formatCsv", () => {
  it("quotes what needs it and leaves missing cells empty", () => {
    const text = formatCsv(
      ["name", "value"],
      [
        ['a "quoted", name', 1.5],
        [null, Number.NaN],
      ],
    );
    expect(text).toBe('name,value\r\n"a ""quoted"", name",1.5\r\n,\r\n');
  });

  it("does not let a name become a formula", () => {
    expect(formatCsv(["name"], [["=HYPERLINK(1)"], ["-rm"]])).toBe("name\r\n'=HYPERLINK(1)\r\n'-rm\r\n");
    expect(formatCsv(["value"], [[-3]])).toBe("value\r\n-3\r\n");
  });
});
