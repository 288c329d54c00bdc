import { describe, expect, it } from "vitest";
import { describeHealth } from "./book/channel-list.tsx";
import { formatHours, nativeId } from "./words.ts";

describe("GPU-hours", () => {
  it.each([
    [0, "0"],
    [0.01, "<0.1"],
    [0.44, "0.4"],
    [9.94, "9.9"],
    [9.96, "10"],
    [12_345.6, "12,346"],
  ])("%d is %s", (hours, words) => {
    expect(formatHours(hours)).toBe(words);
  });
});

it("leaves out the source of a workload's id", () => {
  expect(nativeId("slurm:4711_3")).toBe("4711_3");
  expect(nativeId("4711")).toBe("4711");
});

describe("a channel", () => {
  const fine = { is_configured: true, last_error: null, is_lasting: false };
  it.each([
    [fine, "works"],
    [{ ...fine, last_error: "cannot reach it" }, "retrying"],
    [{ ...fine, last_error: "403", is_lasting: true }, "fails"],
    [{ ...fine, is_configured: false }, "not configured"],
  ])("%o %s", (channel, words) => {
    expect(describeHealth(channel)[1]).toBe(words);
  });
});
