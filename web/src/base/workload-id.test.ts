import { expect, it } from "vitest";
import { nativeId } from "./workload-id.ts";

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
