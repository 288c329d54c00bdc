import { describe, expect, it } from "vitest";
import { INITIAL_SCREEN, serializeScreen } from "../../../state/screen.ts";
import { travelTo } from "../../../state/time.ts";
import { showUnits } from "./choices.ts";

const link = (...parts: Parameters<typeof showUnits>) =>
  decodeURIComponent(serializeScreen(showUnits(...parts)(INITIAL_SCREEN)));

describe("a click on a number", () => {
  it("shows its units", () => {
    expect(link({ kind: "state", states: ["free"] })).toBe("/?where=unit_state:free");
    expect(link({ kind: "stranded" })).toBe("/?picture=fragmentation-by-host&where=free_use:stranded");
    expect(link({ kind: "queue" })).toBe("/?picture=waiting-by-resource-type");
    expect(link({ kind: "free", partition: "a100" })).toContain("where=unit_state:free&where=partition:a100");
  });

  it("leaves the queue for a picture that has them", () => {
    const queue = showUnits({ kind: "queue" })(INITIAL_SCREEN);
    expect(showUnits({ kind: "state", states: ["free"] })(queue).picture).toBe("who-uses-what");
    const nodes = { ...INITIAL_SCREEN, table: "nodes", sort: { column: "rack", descending: true } } as const;
    expect(showUnits({ kind: "all" })(nodes)).toMatchObject({ table: "picture", sort: null });
  });

  it("stays in the past", () => {
    expect(showUnits({ kind: "stranded" })(travelTo(60_000)(INITIAL_SCREEN)).at).toBe(60_000);
  });
});
