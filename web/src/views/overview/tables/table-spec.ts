// What a table of the overview consists of, and how filters, search and order turn all its rows into those shown. Pure.

import { computeOrder } from "../../../base/order.ts";
import {
  FILTER_NAMES,
  type FilterName,
  type Filters,
  perFilter,
  type Selection,
  type Sort,
} from "../../../state/screen.ts";
import type { Column } from "../../../widgets/data-table/columns.ts";

export interface TableSpec<Row> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly initialSort: Sort;
  keyOf(row: Row): string;
  selectionOf(row: Row): Selection;
  /** What a row has of an attribute: one name, several, or none. */
  facetOf(row: Row, name: FilterName): string | readonly string[] | null;
  /** Everything a search should find the row by. */
  textOf(row: Row): string;
}

export type FacetCounts = Readonly<Record<FilterName, ReadonlyMap<string, number>>>;

export interface ShownRows<Row> {
  readonly rows: readonly Row[];
  readonly facets: FacetCounts;
}

export interface Narrowing {
  readonly filters: Filters;
  readonly text: string;
}

/** A facet counts the rows that pass every other filter: what choosing a value would show. */
export function narrowRows<Row>(spec: TableSpec<Row>, { filters, text }: Narrowing): ShownRows<Row> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = perFilter((name) => new Set(filters[name]));
  const counts = perFilter(() => new Map<string, number>());
  const rows: Row[] = [];
  for (const row of spec.rows) {
    if (words.length > 0 && !hasWords(spec.textOf(row), words)) continue;
    const names = perFilter((name) => toNames(spec.facetOf(row, name)));
    const failed = FILTER_NAMES.filter((name) => !passes(names[name], chosen[name]));
    if (failed.length === 0) rows.push(row);
    for (const name of FILTER_NAMES) {
      if (failed.every((other) => other === name)) countNames(counts[name], names[name]);
    }
  }
  return { rows, facets: counts };
}

function passes(names: readonly string[], chosen: ReadonlySet<string>): boolean {
  return chosen.size === 0 || names.some((name) => chosen.has(name));
}

function countNames(counts: Map<string, number>, names: readonly string[]): void {
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
}

export function orderRows<Row>(spec: TableSpec<Row>, rows: readonly Row[], sort: Sort): readonly Row[] {
  const column = spec.columns.find(({ key }) => key === sort.column);
  if (!column) return rows;
  const order = computeOrder(
    rows.map((row) => column.sortKey(row)),
    sort.descending,
  );
  return Array.from(order, (index) => rows[index] as Row);
}

function toNames(facet: string | readonly string[] | null): readonly string[] {
  if (facet === null) return [];
  return typeof facet === "string" ? [facet] : facet;
}

function hasWords(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}
