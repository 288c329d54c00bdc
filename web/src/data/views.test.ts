import { describe, expect, it } from "vitest";
import { nameOf, readMine } from "./views.ts";

describe("views of this browser", () => {
  it("are those that can be read, by title", () => {
    const stored = JSON.stringify({
      zebra: { version: 1, title: "Zebra", layers: [{ by: "node" }] },
      ape: { version: 1, title: "Ape", layers: [], look: { color: ["user"] } },
      "Not a name": { version: 1, title: "x", layers: [] },
      broken: 7,
    });
    const views = readMine(stored);
    expect(views.map(({ picture, document }) => [picture, document.title])).toEqual([
      ["mine:ape", "Ape"],
      ["mine:zebra", "Zebra"],
    ]);
    expect(views[0]?.document.look).toEqual({ color: ["user"] });
  });

  it("are none where the browser remembers nothing or nonsense", () => {
    for (const stored of [null, "", "7", "[]", "{"]) expect(readMine(stored)).toEqual([]);
  });

  it("have the name they are kept under", () => {
    expect(nameOf("mine:a-b")).toBe("a-b");
    expect(nameOf("who-uses-what")).toBe("who-uses-what");
  });
});
