// The theme: light, dark, or that of the system. Stored in this browser, not in the link.

import { useSyncExternalStore } from "react";
import { readStored, writeStored } from "../base/storage.ts";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "clusterscape.theme";
const listeners = new Set<() => void>();
let current: Theme = THEMES.find((theme) => theme === readStored(KEY)) ?? "system";

export function setTheme(theme: Theme): void {
  current = theme;
  writeStored(KEY, theme);
  applyTheme();
  for (const listener of listeners) listener();
}

export function applyTheme(): void {
  if (current === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = current;
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => current);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
