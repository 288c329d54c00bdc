import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUILTIN_VIEWS } from "../layout/builtin-views.ts";
import { DEFAULT_VIEW } from "../layout/grammar.ts";
import { editLayout, openPicture } from "./changes.ts";
import { isSameLook, lookOf, withLook } from "./look.ts";
import { parseLayout, parsePictureRef } from "./picture.ts";
import { INITIAL_SCREEN, parseScreen, serializeScreen, VIEW_NAMES } from "./screen.ts";
import { cutTitle, explainUnreadable, MAX_TITLE, nameView, readDocument, writeDocument } from "./view-document.ts";

function parseLink(link: string) {
  const url = new URL(link, "http://page");
  return parseScreen(url.pathname, url.search, VIEW_NAMES);
}

const [first, second] = BUILTIN_VIEWS.map(({ view }) => view);
if (!first || !second) throw new Error("there are no built-in views");

describe("a saved view", () => {
  const title = fc.string({ minLength: 1, maxLength: 60, unit: "grapheme" }).filter((text) => text.trim() === text);

  it("is read back as it was written, and through JSON", () => {
    fc.assert(
      fc.property(title, fc.constantFrom(...BUILTIN_VIEWS), (name, { view }) => {
        const document = { title: name, view, look: { color: ["power_watts"] } };
        expect(readDocument(writeDocument(document))).toEqual({ document, leftOut: [] });
        expect(readDocument(JSON.stringify(writeDocument(document)))).toEqual({ document, leftOut: [] });
      }),
    );
  });

  it("has a version and a title next to its layers, as the server wants it", () => {
    expect(writeDocument({ title: "Mine", view: DEFAULT_VIEW, look: {} })).toEqual({
      version: 1,
      title: "Mine",
      layers: [],
    });
  });

  it("keeps settings of colors that come later", () => {
    const read = readDocument({ layers: [], look: { color_glow: ["9"], color: "no list", moon: ["full"] } });
    expect(read?.document.look).toEqual({ color_glow: ["9"] });
  });

  it("opens with what is valid and says what it left out", () => {
    const read = readDocument({ title: 7, layers: [{ by: "node" }, { by: "zodiac" }], look: "bright" });
    expect(read?.document.title).toBe("Untitled view");
    expect(read?.document.view.layers.map(({ by }) => by)).toEqual(["node"]);
    expect(read?.leftOut).toEqual([
      "Layer 2 groups by “zodiac”, which units do not have; it was ignored.",
      "The view's colors are invalid; they were ignored.",
    ]);
  });

  it("is not anything else", () => {
    for (const nonsense of [null, 7, "", "[]", "{", {}, { title: "a" }, []]) expect(readDocument(nonsense)).toBeNull();
    expect(explainUnreadable('{"layers": [')).toContain("This is not JSON");
    expect(explainUnreadable('{"title": "a"}')).toContain("neither layers nor a mark");
  });

  it("has a title of whole characters, no longer than the server takes", () => {
    const long = "🦑".repeat(150);
    expect(cutTitle(long)).toBe("🦑".repeat(MAX_TITLE / 2));
    expect(readDocument({ layers: [], title: "‏ليلة ".repeat(60) })?.document.title.length).toBeLessThanOrEqual(
      MAX_TITLE,
    );
  });

  it("has a name that links and the server take, whatever its title", () => {
    expect(nameView("Night shift (A100)", [])).toBe("night-shift-a100");
    expect(nameView("Ünïcode", [])).toBe("unicode");
    expect(nameView("🦑", ["view"])).toBe("view-2");
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.array(fc.string()), (text, taken) => {
        const name = nameView(text, taken);
        expect(parsePictureRef(`shared:${name}`)).toBe(`shared:${name}`);
        expect(taken).not.toContain(name);
      }),
    );
  });
});

describe("the picture of a link", () => {
  it("is short while nothing was edited, and holds the layout where it was", () => {
    const opened = openPicture("fragmentation-by-host", first, {})(INITIAL_SCREEN);
    expect(serializeScreen(opened)).toBe("/?picture=fragmentation-by-host");
    const edited = editLayout("fragmentation-by-host", second, first)(opened);
    expect(edited.layout).toBe(second);
    expect(parseLink(serializeScreen(edited))).toEqual({ screen: edited, notices: [] });
    expect(editLayout("fragmentation-by-host", first, first)(edited)).toEqual(opened);
  });

  it("holds all of a view that only this browser knows", () => {
    const opened = openPicture("mine:night", second, {})(INITIAL_SCREEN);
    expect(parseLink(serializeScreen(opened)).screen.layout).toEqual(second);
  });

  it("opens with what is valid of its layout and says what was left out", () => {
    const notices: string[] = [];
    expect(parseLayout('{"layers":[{"by":"node","layout":"spiral"},{"by":"zodiac"}]}', notices)?.layers).toHaveLength(
      1,
    );
    expect(notices).toHaveLength(2);
    for (const nonsense of ["", "7", "[]", "{"]) expect(parseLayout(nonsense, notices)).toBeNull();
    expect(notices).toHaveLength(6);
  });

  it("names only what can be a view", () => {
    for (const name of ["shared:", "shared:A", "mine:-a", "other:a", "who", `shared:${"a".repeat(65)}`]) {
      expect(parsePictureRef(name)).toBeUndefined();
    }
  });
});

describe("a look", () => {
  it("is the colors of the screen and nothing else", () => {
    const { screen } = parseLink("/?color=power_watts&q=ada&picture=shared:night");
    expect(lookOf(screen)).toEqual({ color: ["power_watts"] });
    const plain = withLook(screen, {});
    expect(plain).toEqual({ ...screen, color: null });
    expect(withLook(plain, lookOf(screen))).toEqual(screen);
  });

  it("cannot break the screen", () => {
    const { screen } = parseLink("/?q=ada");
    expect(withLook(screen, { color: ["mood"], q: ["eve"], "color&q": ["eve"] })).toEqual(screen);
    expect(isSameLook({ color: ["a"] }, { color: ["a"] })).toBe(true);
  });
});
