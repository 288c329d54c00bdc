import { describe, expect, it } from "vitest";
import { extractStrings, HEADER, writeStrings } from "./strings.ts";

const extract = (source: string) => extractStrings("page.tsx", source);

describe("extractStrings", () => {
  it("reads text, expressions and readable attributes of elements", () => {
    const source = `<main aria-label="rules" title={isOpen ? "close" : \`open \${row.name}\`}>{isOpen ? "yes" : "no"} GPUs</main>`;
    expect(extract(source)).toEqual(["{…} GPUs", "rules", "close", "open {name}", "yes", "no"]);
  });

  it("joins a sentence across the elements within it", () => {
    const source =
      "<p>Held for {formatDuration(ageMs)} by <b>{user}</b> since <RelativeTime at={at} />, <i /> idle</p>";
    expect(extract(source)).toEqual(["Held for {ageMs} by <b>{user}</b> since {RelativeTime}, idle"]);
  });

  it("names what is filled in", () => {
    expect(
      extract("const label = `$" + "{formatCount(rows.length)} of $" + "{index + 1} at $" + "{a ? b : c}`;"),
    ).toEqual(["{length} of {index} at {…}"]);
  });

  it("takes single words where the name says that they are read", () => {
    expect(extract(`const STATE_WORDS = { held: "held", free: "free" };`)).toEqual(["held", "free"]);
    expect(extract(`function describeState() { if (isIdle) return "idle"; return "busy"; }`)).toEqual(["idle", "busy"]);
    expect(extract(`const columns = [{ key: "user", title: "user", width: "3fr" }];`)).toEqual(["user"]);
  });

  it("takes sentences and capitalized words anywhere else", () => {
    expect(extract(`notify("The link was copied."); const first = "Overview";`)).toEqual([
      "The link was copied.",
      "Overview",
    ]);
  });

  it("leaves out imports, types, comparisons, keys, classes, selectors and styles", () => {
    const source = `
      import styles from "Some file";
      type Kind = "Big one" | "Small one";
      const isOpen = state === "Open now";
      const values = { "Two words": 1 };
      const cell = <td className="wide cell" data-kind="Some kind" style={{ font: "bold Inter" }} aria-controls="The list" />;
      document.querySelector("main Section");
      switch (key) { case "Page Up": break; }
      const path = "M0 0h4v4z";
      const shade = \`linear-gradient(to right, \${colors})\`;
    `;
    expect(extract(source)).toEqual([]);
  });

  it("lists a text once and stops at a source that does not parse", () => {
    expect(extract(`<><b title="Close">Close</b><b>Close</b></>`)).toEqual(["Close"]);
    expect(() => extract("const =")).toThrow("page.tsx");
  });

  it("reads what a page shows without scripts", () => {
    const source = `<title>ClusterScape</title><noscript>Please allow scripts.</noscript><div id="root"></div>`;
    expect(extractStrings("index.html", source)).toEqual(["ClusterScape", "Please allow scripts."]);
  });
});

describe("writeStrings", () => {
  it("groups texts by file, in the order of paths, without files that have none", () => {
    const sources = { "src/b.tsx": "<p>Later</p>", "src/a.ts": `const title = "First";`, "src/c.ts": "const x = 1;" };
    expect(writeStrings(sources)).toBe(`${HEADER}\nsrc/a.ts\n  First\n\nsrc/b.tsx\n  Later\n`);
  });
});
