// Descriptions of conditions, short enough for a chip.

import { attributeOf, type NameAttribute } from "../../../state/attributes.ts";
import { TABLES, type TableName } from "../../../state/screen.ts";
import { type Clause, type Condition, findClause, type Where } from "../../../state/where.ts";
import { stateWords } from "../words.ts";
import { formatRange } from "./number-words.ts";

const MOST_NAMES = 3;
const MAX_NAME = 40;

/** `user ada, bob`, `GPU utilization up to 15 % or project none`. */
export function describeClause(clause: Clause): string {
  return clause.map((condition) => `${titleOf(condition)} ${describeCondition(condition)}`).join(" or ");
}

export function titleOf({ attribute }: Condition): string {
  return attributeOf(attribute).title;
}

/** For the middle of a sentence: `GPU utilization` stays, `Power` does not. */
export function lowerTitle(title: string): string {
  return /^[A-Z][a-z]/.test(title) ? title.charAt(0).toLowerCase() + title.slice(1) : title;
}

/** Without the attribute. */
export function describeCondition(condition: Condition): string {
  const not = condition.isNegated ? "not " : "";
  switch (condition.kind) {
    case "range": {
      const attribute = attributeOf(condition.attribute);
      return attribute.kind === "number" ? `${not}${formatRange(condition, attribute.unit)}` : not;
    }
    case "text":
      return `${not}with “${cut(condition.text)}”`;
    case "names": {
      const attribute = attributeOf(condition.attribute);
      const names = condition.names.slice(0, MOST_NAMES).map((name) => formatName(name, attribute as NameAttribute));
      const more = condition.names.length - names.length;
      return `${not}${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    }
  }
}

function formatName(name: string | null, { values }: NameAttribute): string {
  if (name === null) return "none";
  return cut(values === null ? name : stateWords(name));
}

function cut(text: string): string {
  return text.length > MAX_NAME ? `${text.slice(0, MAX_NAME)}…` : text;
}

const PARTS = ["partition", "project", "user"] as const;

/** The clauses that the lists of facets show and change: they need no card. */
export function listFacetClauses(where: Where, table: TableName): readonly number[] {
  return [TABLES[table].state, ...PARTS]
    .map((attribute) => findClause(where, attribute, "names"))
    .filter((at) => at >= 0);
}

export const TABLE_ROWS: Readonly<Record<TableName, string>> = {
  picture: "Units",
  units: "Units",
  workloads: "Workloads",
  nodes: "Nodes",
};

/** Why a clause is not applied to a table; null where it is. */
export function explainUnapplied(clause: Clause, isApplied: boolean | undefined, table: TableName): string | null {
  if (isApplied !== false) return null;
  const titles = [...new Set(clause.map(titleOf))].map(lowerTitle).join(", ");
  return `${TABLE_ROWS[table]} have no ${titles}: not applied here.`;
}
