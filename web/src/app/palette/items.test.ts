import { describe, expect, it } from "vitest";
import type { SearchHit } from "../../api/generated.ts";
import { toggleFilter } from "../../state/changes.ts";
import { INITIAL_SCREEN } from "../../state/screen.ts";
import { namesCondition } from "../../state/where.ts";
import { hitsFor, listItems, openHit } from "./items.ts";

const hit = (kind: SearchHit["kind"], key: string): SearchHit => ({ kind, key, label: key, detail: "" });
const labels = (...args: Parameters<typeof listItems>) =>
  listItems(...args).map(({ group, label }) => `${group}: ${label}`);

describe("listItems", () => {
  it("begins with what was opened lately, then actions", () => {
    const items = labels("", [], [hit("node", "gpu-001")]);
    expect(items[0]).toBe("Recent: gpu-001");
    expect(items).toContain("Actions: Theme: dark");
  });

  it("puts hits of one kind together, the best kind first", () => {
    const hits = [hit("user", "ada"), hit("workload", "slurm:1"), hit("user", "adam")];
    expect(labels("ad", hits, [])).toEqual(["Users: ada", "Users: adam", "Workloads: slurm:1"]);
  });

  it("finds actions by the beginnings of their words", () => {
    expect(labels("th da", [], [])).toEqual(["Actions: Theme: dark"]);
    expect(labels("heme", [], [])).toEqual([]);
  });
});

describe("hitsFor", () => {
  const hits = [hit("node", "gpu-001"), hit("node", "gpu-003")];

  it("keeps all hits when they answer what is typed", () => {
    expect(hitsFor("GPU ", "gpu", hits)).toEqual(hits);
  });

  it("keeps only those that still match when they answer an earlier text", () => {
    expect(hitsFor("gpu-003", "gpu-0", hits)).toEqual([hits[1]]);
    expect(hitsFor("", "gpu-0", hits)).toEqual([]);
  });
});

describe("openHit", () => {
  it("opens a workload next to the current table", () => {
    const before = toggleFilter("user", "bob")(INITIAL_SCREEN);
    const after = openHit(hit("workload", "slurm:1"))(before);
    expect(after).toEqual({ ...before, selection: { kind: "workload", key: "slurm:1" } });
  });

  it("shows the workloads of a user and of nobody else", () => {
    const before = toggleFilter("partition", "v100")(INITIAL_SCREEN);
    const { table, where } = openHit(hit("user", "ada"))(before);
    expect({ table, where }).toEqual({
      table: "workloads",
      where: [[namesCondition("user", ["ada"])]],
    });
  });
});
