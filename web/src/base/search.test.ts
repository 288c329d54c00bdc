import { describe, expect, it } from "vitest";
import { makeSearch, matchesComparison, parseSearch } from "./search.ts";

interface Job {
  readonly name: string;
  readonly user: string | null;
  readonly gpus: number;
}

const JOBS: readonly Job[] = [
  { name: "train-7b", user: "Ada", gpus: 8 },
  { name: "eval", user: "bob", gpus: 1 },
  { name: "train-13b", user: null, gpus: 64 },
];

function find(text: string): readonly string[] {
  const test = makeSearch<Job>(
    text,
    ({ name, user }) => [name, user],
    (job, name) => ({ user: job.user, gpus: job.gpus })[name],
  );
  return JOBS.filter(test).map(({ name }) => name);
}

describe("a search", () => {
  it("means all rows when nothing is typed", () => expect(find("  ")).toHaveLength(3));
  it("wants all words, whatever their case", () => expect(find("TRAIN ada")).toEqual(["train-7b"]));
  it("compares names and numbers", () => {
    expect(find("user=ada")).toEqual(["train-7b"]);
    expect(find("gpus>8")).toEqual(["train-13b"]);
    expect(find("gpus>=8 train")).toEqual(["train-7b", "train-13b"]);
    expect(find("user!=bob")).toEqual(["train-7b"]);
  });
  it("takes a workload by the id that its scheduler writes", () => {
    expect(parseSearch("workload=3_7.0").comparisons).toEqual([
      { name: "workload", operator: "=", value: "slurm:3_7" },
    ]);
  });
  it("means no row when a name stands for nothing", () => expect(find("color=red")).toEqual([]));
  it("takes what is typed by halves for a word", () => {
    expect(parseSearch("user= =x a<")).toEqual({ words: ["user=", "=x", "a<"], comparisons: [] });
  });
  it("takes a percentage for a ratio", () => {
    expect(matchesComparison(0.15, { operator: "<", value: "20%" })).toBe(true);
    expect(matchesComparison("0.2", { operator: "=", value: "20%" })).toBe(true);
    expect(matchesComparison("batch", { operator: ">", value: "20%" })).toBe(true);
  });
});
