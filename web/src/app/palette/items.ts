// What the palette offers: hits of the search, what was opened lately, and actions. Pure; the palette draws and runs it.

import type { HitKind, SearchHit } from "../../api/generated.ts";
import { clearFilters, type ScreenChange, select, setFilter, showTable } from "../../state/changes.ts";
import { INITIAL_SCREEN } from "../../state/screen.ts";
import type { IconName } from "../../widgets/icon.tsx";
import type { Theme } from "../theme.ts";

export type Deed =
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
  readonly deed: Deed;
}

const GROUPS: Readonly<Record<HitKind, string>> = {
  workload: "Workloads",
  user: "Users",
  project: "Projects",
  node: "Nodes",
};

const ACTIONS: readonly PaletteItem[] = [
  action("copy-link", "Copy link to this screen", { kind: "copy-link" }, "link"),
  action("keys", "Keys of this page", { kind: "keys" }, "help"),
  action("theme-light", "Theme: light", { kind: "theme", theme: "light" }, "sun"),
  action("theme-dark", "Theme: dark", { kind: "theme", theme: "dark" }, "moon"),
  action("theme-system", "Theme: as the system", { kind: "theme", theme: "system" }, "screen"),
  action("show-picture", "Show picture", { kind: "change", change: showTable("picture") }, "workload"),
  action("show-workloads", "Show workloads", { kind: "change", change: showTable("workloads") }, "workload"),
  action("show-units", "Show units", { kind: "change", change: showTable("units") }, "workload"),
  action("show-nodes", "Show nodes", { kind: "change", change: showTable("nodes") }, "node"),
  action("clear-filters", "Clear filters", { kind: "change", change: clearFilters }, "filter"),
];

function action(id: string, label: string, deed: Deed, icon: IconName): PaletteItem {
  return { id, group: "Actions", icon, label, detail: "", deed };
}

/** Hits by kind, best kind first, then the actions whose words begin with what was typed. */
export function listItems(
  text: string,
  hits: readonly SearchHit[],
  recent: readonly SearchHit[],
): readonly PaletteItem[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...recent.map((hit) => hitItem(hit, "Recent")), ...ACTIONS];
  const kinds = [...new Set(hits.map((hit) => hit.kind))];
  const found = kinds.flatMap((kind) =>
    hits.filter((hit) => hit.kind === kind).map((hit) => hitItem(hit, GROUPS[kind])),
  );
  return [...found, ...ACTIONS.filter(({ label }) => words.every((word) => hasWordStart(label, word)))];
}

/** The hits that still fit what is typed: those of an earlier text stay in sight only as far as they match. */
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
    deed: { kind: "open", hit },
  };
}

function hasWordStart(label: string, word: string): boolean {
  return label
    .toLowerCase()
    .split(/[^a-z]+/)
    .some((part) => part.startsWith(word));
}

/** Workloads and nodes are opened beside the table; a user or a project shows its workloads. */
export function openHit(hit: SearchHit): ScreenChange {
  return (screen) => {
    const overview = { ...screen, view: INITIAL_SCREEN.view };
    if (hit.kind === "workload" || hit.kind === "node") return select({ kind: hit.kind, key: hit.key })(overview);
    return setFilter(hit.kind, [hit.key])(showTable("workloads")(clearFilters(overview)));
  };
}
