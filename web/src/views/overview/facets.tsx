// Filters by what the rows of the table have: state, project, user. Partitions have a list of their own.

import { compareWords } from "../../base/order.ts";
import { type FilterName, type Filters, TABLES, type TableName } from "../../state/screen.ts";
import { FacetList, type FacetValue } from "../../widgets/facet-list.tsx";
import type { FacetCounts } from "./tables/table-spec.ts";
import { stateWords } from "./words.ts";

interface FacetsProps {
  readonly table: TableName;
  readonly counts: FacetCounts;
  readonly filters: Filters;
  onToggle(name: FilterName, value: string): void;
}

export function Facets({ table, counts, filters, onToggle }: FacetsProps) {
  return (
    <>
      <FacetList
        title="State"
        values={stateValues(table, counts.state)}
        chosen={filters.state}
        onToggle={(value) => onToggle("state", value)}
      />
      {(["project", "user"] as const).map((name) => {
        const values = countedValues(counts[name]);
        if (values.length === 0 && filters[name].length === 0) return null;
        return (
          <FacetList
            key={name}
            title={name === "project" ? "Project" : "User"}
            values={values}
            chosen={filters[name]}
            onToggle={(value) => onToggle(name, value)}
          />
        );
      })}
    </>
  );
}

function countedValues(counts: ReadonlyMap<string, number>): readonly FacetValue[] {
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || compareWords(a.value, b.value));
}

/** Every state in its own order, not only those there are now. Workloads that have ended are not counted: only those
 * asked for are fetched. */
function stateValues(table: TableName, counts: ReadonlyMap<string, number>): readonly FacetValue[] {
  return TABLES[table].states.map((value) => {
    const isFetched = table !== "workloads" || counts.has(value) || ["running", "waiting", "suspended"].includes(value);
    return { value, label: stateWords(value), count: isFetched ? (counts.get(value) ?? 0) : null };
  });
}
