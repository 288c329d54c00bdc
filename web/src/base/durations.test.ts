import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { DAY_MS, DAY_S, WEEK_MS } from "./durations.ts";

const SOURCES = dirname(dirname(fileURLToPath(import.meta.url)));
const DEFINED = /^(?:export )?const (?:SECOND|MINUTE|HOUR|DAY|WEEK)(?:_S|_MS)?\s*=\s*[\d(]/m;

test("a day has the seconds and milliseconds that Date counts", () => {
  expect(Date.UTC(2026, 1, 2) - Date.UTC(2026, 1, 1)).toBe(DAY_MS);
  expect(DAY_S * 1000).toBe(DAY_MS);
  expect(Date.UTC(2026, 1, 8) - Date.UTC(2026, 1, 1)).toBe(WEEK_MS);
});

test("lengths of time are defined only here", () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
  const defining = files.filter((name) => DEFINED.test(readFileSync(join(SOURCES, name), "utf8")));
  expect(files.length).toBeGreaterThan(100);
  expect(defining).toEqual([join("base", "durations.ts")]);
});
