import { describe, expect, it } from "vitest";
import { openView, select } from "./changes.ts";
import { INITIAL_SCREEN, parseScreen, type Screen, serializeScreen, VIEW_NAMES } from "./screen.ts";

const AT = Date.parse("2026-11-15T08:41Z");

function withGroup(key: string): Screen {
  return select({ kind: "group", key })({ ...INITIAL_SCREEN, at: AT });
}

describe("another view", () => {
  it("keeps the time and the selected workload, and its link says both", () => {
    const chosen = select({ kind: "workload", key: "slurm:7" })({ ...INITIAL_SCREEN, at: AT });
    for (const view of VIEW_NAMES) {
      const { screen } = parseScreen(...splitLink(serializeScreen(openView(view)(chosen))), VIEW_NAMES);
      expect([screen.view, screen.at, screen.selection?.key]).toEqual([view, AT, "slurm:7"]);
    }
    expect(openView("diagnostics")(chosen).diagnostics.workload).toBe("slurm:7");
  });

  it("shows what is theirs when a user's group is selected", () => {
    const chosen = withGroup("gpus/project=nlp/user=ada");
    expect(openView("rules")(chosen).rulesPage.users).toEqual(["ada"]);
    expect(openView("scheduling")(chosen).scheduling.text).toBe("user=ada");
    expect(openView("runs")(chosen).runs.text).toBe("user=ada");
    expect(openView("parallel")(chosen)).toEqual({ ...chosen, view: "parallel" });
  });

  it("shows what is the project's when its group is selected", () => {
    const chosen = withGroup("gpus/project=nlp");
    expect(openView("rules")(chosen).rulesPage).toMatchObject({ users: [], projects: ["nlp"] });
    expect(openView("scheduling")(chosen).scheduling.text).toBe("project=nlp");
  });

  it("changes nothing else when a group is nobody's", () => {
    const chosen = withGroup("gpus/partition=a100");
    expect(openView("rules")(chosen)).toEqual({ ...chosen, view: "rules" });
  });
});

function splitLink(link: string): [pathname: string, search: string] {
  const [path = "", search = ""] = link.split("?");
  return [path, `?${search}`];
}
