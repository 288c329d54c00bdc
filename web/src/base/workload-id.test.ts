import { expect, it } from "vitest";
import { nativeId, qualifyWorkload } from "./workload-id.ts";

it.each([
  ["slurm:4711_3", "4711_3"],
  ["4711", "4711"],
  ["kubernetes:team-a.train.1f3c9a2b", "k8s team-a/train"],
  ["kubernetes:team-a.train.v2.1f3c9a2b", "k8s team-a/train.v2"],
  ["kubernetes:team-a.trio", "k8s team-a/trio"],
  ["kubernetes:team-a/pod-0", "k8s team-a/pod-0"],
])("%s is shown as %s", (id, shown) => {
  expect(nativeId(id)).toBe(shown);
});

it.each([
  ["3", "slurm:3"],
  ["3_7", "slurm:3_7"],
  ["3_7.0", "slurm:3_7"],
  ["3+1", "slurm:3+1"],
  ["3 1", "slurm:3+1"],
  ["3.batch", "slurm:3"],
  ["3;cluster", "slurm:3"],
  ["slurm:3.0", "slurm:3"],
  ["kubernetes:a.b", "kubernetes:a.b"],
  ["train-3", "train-3"],
])("%s means %s", (text, id) => {
  expect(qualifyWorkload(text)).toBe(id);
});
