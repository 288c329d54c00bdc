// The access page in a link: which table is shown.

import { choiceField, type Field } from "./fields.ts";
import type { Screen } from "./screen.ts";

export const ACCESS_TABLES = ["mine", "accounts", "tokens", "audit"] as const;
export type AccessTable = (typeof ACCESS_TABLES)[number];

const accessField = choiceField("access", ACCESS_TABLES, "mine");

export const INITIAL_ACCESS: AccessTable = accessField.initial;

export const parseAccess = (read: <T>(field: Field<T>) => T): AccessTable => read(accessField);

export function writeAccess(table: AccessTable, write: <T>(field: Field<T>, value: T) => void): void {
  write(accessField, table);
}

export const showAccess =
  (access: AccessTable) =>
  (screen: Screen): Screen => ({ ...screen, view: "access", access });
