// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from "vitest";
import { searchFor, showTable } from "./changes.ts";
import { createMemoryScreenStore, createScreenStore } from "./screen-store.ts";

beforeEach(() => window.history.replaceState(null, "", "/"));

async function goBack(): Promise<void> {
  const arrived = new Promise((resolve) => window.addEventListener("popstate", resolve, { once: true }));
  window.history.back();
  await arrived;
}

describe("the screen in the address", () => {
  it("is undone by the back button", async () => {
    const store = createScreenStore(window, ["overview"]);
    const listener = vi.fn();
    store.subscribe(listener);
    store.change(showTable("nodes"));
    expect(window.location.search).toBe("?table=nodes");
    await goBack();
    expect(store.read().screen.table).toBe("picture");
    expect(listener).toHaveBeenCalledTimes(2);
  });

  it("takes typing as one step", async () => {
    const store = createScreenStore(window, ["overview"]);
    store.subscribe(() => {});
    store.change(showTable("units"));
    for (const text of ["l", "ll", "llm"]) store.change(searchFor(text), "replace");
    expect(window.location.search).toBe("?table=units&q=llm");
    await goBack();
    expect(store.read().screen).toMatchObject({ table: "picture", text: "" });
  });

  it("does not count what changes nothing", () => {
    const store = createScreenStore(window, ["overview"]);
    const before = window.history.length;
    store.change(showTable("picture"));
    expect(window.history.length).toBe(before);
  });
});

describe("a screen without an address", () => {
  it("changes, tells who listens, and leaves the address alone", () => {
    const store = createMemoryScreenStore();
    const listener = vi.fn();
    const stop = store.subscribe(listener);
    store.change(showTable("nodes"));
    expect(store.read().screen.table).toBe("nodes");
    stop();
    store.change(showTable("units"));
    expect(listener).toHaveBeenCalledTimes(1);
    expect(window.location.search).toBe("");
  });
});
