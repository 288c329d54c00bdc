// Items that were recently opened from the palette, stored in this browser.

import type { SearchHit } from "../../api/generated.ts";
import { readStored, writeStored } from "../../base/storage.ts";

const KEY = "clusterscape.recent";
const MOST = 5;

export function readRecent(): readonly SearchHit[] {
  try {
    const stored: unknown = JSON.parse(readStored(KEY) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isHit).slice(0, MOST) : [];
  } catch {
    return [];
  }
}

export function rememberHit(hit: SearchHit): void {
  const others = readRecent().filter(({ kind, key }) => kind !== hit.kind || key !== hit.key);
  writeStored(KEY, JSON.stringify([hit, ...others].slice(0, MOST)));
}

function isHit(value: unknown): value is SearchHit {
  if (typeof value !== "object" || value === null) return false;
  const { kind, key, label, detail } = value as Record<string, unknown>;
  return (
    ["workload", "user", "project", "node"].includes(String(kind)) &&
    [key, label, detail].every((text) => typeof text === "string")
  );
}
