// The entries of the command palette: search hits, recently opened items, and actions. Pure; palette.tsx draws and runs
// them.

import type { HitKind, SearchHit } from "../../api/generated.ts";
import { clearFilters, type ScreenChange, select, setFilter, showTable } from "../../state/changes.ts";
import { INITIAL_SCREEN } from "../../state/screen.ts";
import type { IconName } from "../../widgets/icon.tsx";
import type { Theme } from "../theme.ts";

export type PaletteAction =
  | { readonly kind: "open"; readonly hit: SearchHit }
  | { readonly kind: "theme"; readonly theme: Theme }
  | { readonly kind: "copy-link" }
  | { readonly kind: "keys" }
  | { readonly kind: "change"; readonly change: ScreenChange };

export interface PaletteItem {
  readonly id: string;
  readonly group: string;
  readonly icon: IconName;
  readonly label: string;
  readonly detail: string;
  readonly action: PaletteAction;
}

const GROUPS: Readonly<Record<HitKind, string>> = {
  workload: "Workloads",
  user: "Users",
  project: "Projects",
  node: "Nodes",
};

const ACTIONS: readonly PaletteItem[] = [
  makeAction("copy-link", "Copy link to this screen", { kind: "copy-link" }, "link"),
  makeAction("keys", "Keyboard shortcuts", { kind: "keys" }, "help"),
  makeAction("theme-light", "Theme: light", { kind: "theme", theme: "light" }, "sun"),
  makeAction("theme-dark", "Theme: dark", { kind: "theme", theme: "dark" }, "moon"),
  makeAction("theme-system", "Theme: system", { kind: "theme", theme: "system" }, "screen"),
  makeAction("show-picture", "Show picture", { kind: "change", change: showTable("picture") }, "workload"),
  makeAction("show-workloads", "Show workloads", { kind: "change", change: showTable("workloads") }, "workload"),
  makeAction("show-units", "Show units", { kind: "change", change: showTable("units") }, "workload"),
  makeAction("show-nodes", "Show nodes", { kind: "change", change: showTable("nodes") }, "node"),
  makeAction("clear-filters", "Clear filters", { kind: "change", change: clearFilters }, "filter"),
];

function makeAction(id: string, label: string, action: PaletteAction, icon: IconName): PaletteItem {
  return { id, group: "Actions", icon, label, detail: "", action };
}

/** Hits by kind, best kind first, then the actions that match every typed word by prefix. */
export function listItems(
  text: string,
  hits: readonly SearchHit[],
  recent: readonly SearchHit[],
): readonly PaletteItem[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...recent.map((hit) => hitItem(hit, "Recent")), ...ACTIONS];
  const kinds = [...new Set(hits.map((hit) => hit.kind))];
  const hitItems = kinds.flatMap((kind) =>
    hits.filter((hit) => hit.kind === kind).map((hit) => hitItem(hit, GROUPS[kind])),
  );
  return [...hitItems, ...ACTIONS.filter(({ label }) => words.every((word) => hasWordStart(label, word)))];
}

/** Hits for the typed text: those of an earlier text are kept while they match. */
export function hitsFor(text: string, answered: string, hits: readonly SearchHit[]): readonly SearchHit[] {
  const needle = text.trim().toLowerCase();
  if (needle === "") return [];
  if (needle === answered.trim().toLowerCase()) return hits;
  return hits.filter(({ key, label, detail }) => `${key} ${label} ${detail}`.toLowerCase().includes(needle));
}

function hitItem(hit: SearchHit, group: string): PaletteItem {
  return {
    id: `${hit.kind}:${hit.key}`,
    group,
    icon: hit.kind,
    label: hit.label,
    detail: hit.detail,
    action: { kind: "open", hit },
  };
}

function hasWordStart(label: string, word: string): boolean {
  return label
    .toLowerCase()
    .split(/[^a-z]+/)
    .some((part) => part.startsWith(word));
}

/** A workload or node opens in the details; a user or project filters the table of workloads. */
export function openHit(hit: SearchHit): ScreenChange {
  return (screen) => {
    const overview = { ...screen, view: INITIAL_SCREEN.view };
    if (hit.kind === "workload" || hit.kind === "node") return select({ kind: hit.kind, key: hit.key })(overview);
    return setFilter(hit.kind, [hit.key])(showTable("workloads")(clearFilters(overview)));
  };
}
