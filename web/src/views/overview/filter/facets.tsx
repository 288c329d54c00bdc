// The basic filters: states, projects and users, with the number of rows that each choice would show. They are ordinary
// conditions, shown as lists.

import { useMemo } from "react";
import { compareWords } from "../../../base/order.ts";
import { attributeOf, type NameAttributeName } from "../../../state/attributes.ts";
import { toggleName } from "../../../state/changes.ts";
import { facetAttribute, type TableName } from "../../../state/screen.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { findClause, findNames, type Where } from "../../../state/where.ts";
import { FacetList, type FacetValue } from "../../../widgets/facet-list.tsx";
import { stateWords } from "../words.ts";
import { countNames, type Narrowed } from "./apply-where.ts";
import { type FilterColumns, isNumbers } from "./filter-columns.ts";

interface FacetsProps {
  readonly table: TableName;
  readonly where: Where;
  readonly columns: FilterColumns;
  readonly narrowed: Narrowed;
  /** 1 for each row that counts; null: all do. */
  readonly drawn: Uint8Array | null;
}

const FACET_TITLES = { state: "State", project: "Project", user: "User" } as const;
type Facet = keyof typeof FACET_TITLES;

export function Facets(props: FacetsProps) {
  return (["state", "project", "user"] as const).map((facet) => <OneFacet key={facet} facet={facet} {...props} />);
}

function OneFacet({ facet, table, where, columns, narrowed, drawn }: FacetsProps & { readonly facet: Facet }) {
  const change = useChangeScreen();
  const attribute = facetAttribute(facet, table);
  const clause = findClause(where, attribute, "names");
  const values = useMemo(() => {
    const counts = countValues(columns, narrowed, clause, drawn, attribute);
    return facet === "state" ? stateValues(table, attribute, counts) : countedValues(counts);
  }, [facet, table, columns, narrowed, clause, drawn, attribute]);
  const chosen = findNames(where, attribute).filter((name) => name !== null);
  if (values.length === 0 && chosen.length === 0) return null;
  return (
    <FacetList
      title={FACET_TITLES[facet]}
      values={values}
      chosen={chosen}
      onToggle={(value) => change(toggleName(attribute, value))}
    />
  );
}

type Counts = ReadonlyMap<string, number>;

function countValues(
  columns: FilterColumns,
  narrowed: Narrowed,
  clause: number,
  drawn: Uint8Array | null,
  attribute: NameAttributeName,
): Counts {
  const column = columns.find(attribute);
  const countByName = new Map<string, number>();
  if (column === null || isNumbers(column)) return countByName;
  const counts = countNames(column, narrowed, clause, drawn);
  column.names.forEach((name, code) => {
    const count = counts[code] ?? 0;
    if (name !== null && count > 0) countByName.set(name, count);
  });
  return countByName;
}

function countedValues(counts: Counts): readonly FacetValue[] {
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || compareWords(a.value, b.value));
}

/** States the arrangement never draws are not offered; workloads that have ended are counted only when asked for. */
function stateValues(table: TableName, attribute: NameAttributeName, counts: Counts): readonly FacetValue[] {
  const definition = attributeOf(attribute);
  const all = definition.kind === "name" ? (definition.values ?? []) : [];
  return all.map((value) => {
    const isFetched = table !== "workloads" || counts.has(value) || ["running", "waiting", "suspended"].includes(value);
    return { value, label: stateWords(value), count: isFetched ? (counts.get(value) ?? 0) : null };
  });
}
