// What the access page shows to which role, and what it sends to the server. Pure: no component, no request.

import type { AuditQuery } from "../../api/access-client.ts";
import type {
  AccountAnswer,
  AccountChange,
  AuditRow,
  NewAccount,
  Role,
  Scope,
  SessionAnswer,
} from "../../api/generated.ts";
import type { AccessTable } from "../../state/access.ts";
import { ROLE_WORDS, SCOPES, WAY_WORDS } from "./words.ts";

interface TableEntry {
  readonly table: AccessTable;
  readonly title: string;
  readonly isAdminOnly: boolean;
}

const TABLES: readonly TableEntry[] = [
  { table: "mine", title: "My tokens", isAdminOnly: false },
  { table: "accounts", title: "Accounts", isAdminOnly: true },
  { table: "tokens", title: "All tokens", isAdminOnly: true },
  { table: "audit", title: "Audit log", isAdminOnly: true },
];

export function isAdmin({ who }: SessionAnswer): boolean {
  return who?.role === "admin";
}

export function listTables(session: SessionAnswer): readonly TableEntry[] {
  return TABLES.filter(({ isAdminOnly }) => isAdmin(session) || !isAdminOnly);
}

/** Users who are not administrators see their own tokens, whatever table the link names. */
export function chooseTable(session: SessionAnswer, requested: AccessTable): AccessTable {
  return isAdmin(session) ? requested : "mine";
}

export interface SessionFact {
  readonly label: string;
  readonly value: string;
}

export function listSessionFacts({ who, is_open: isOpen }: SessionAnswer): readonly SessionFact[] {
  if (who === null) return [];
  return [
    { label: "signed in", value: who.title ?? who.login ?? (isOpen ? "anonymous" : "server token") },
    { label: "role", value: ROLE_WORDS[who.role] },
    { label: "sign-in method", value: who.way === null ? "no sign-in required" : WAY_WORDS[who.way] },
    ...(who.projects.length > 0 ? [{ label: "projects", value: who.projects.join(", ") }] : []),
  ];
}

/** Tokens belong to an account: the server token and anonymous users have none. */
export function canCreateToken({ who }: SessionAnswer): boolean {
  return who !== null && who.login !== null;
}

export function listScopes(session: SessionAnswer): typeof SCOPES {
  return SCOPES.filter(({ scope }) => isAdmin(session) || scope !== "admin");
}

export function toggleScope(scopes: readonly Scope[], scope: Scope): readonly Scope[] {
  return scopes.includes(scope) ? scopes.filter((other) => other !== scope) : [...scopes, scope];
}

export function accountKey({ way, login }: Pick<AccountAnswer, "way" | "login">): string {
  return `${way} ${login}`;
}

/** Splits names that are separated by spaces or commas. */
export function parseProjects(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

export interface AccountFields {
  readonly login: string;
  readonly title: string;
  readonly password: string;
  readonly role: Role;
  readonly projects: string;
}

export function toNewAccount({ login, title, password, role, projects }: AccountFields): NewAccount {
  return { login: login.trim(), title: title.trim() || null, password, role, projects: parseProjects(projects) };
}

/** Leaves out an unchanged role and an empty password. */
export function toAccountChange(
  account: AccountAnswer,
  { role, projects, password }: Pick<AccountFields, "role" | "projects" | "password">,
): AccountChange {
  return {
    ...(role === account.role ? {} : { role }),
    projects: parseProjects(projects),
    ...(password === "" ? {} : { password }),
  };
}

export function describeAuditRow({ target, details }: Pick<AuditRow, "target" | "details">): string {
  const pairs = Object.entries(details).map(([name, value]) => `${name} ${value}`);
  return [target, ...pairs].filter(Boolean).join(" · ");
}

export function toAuditQuery(actor: string, action: string, limit: number): AuditQuery {
  return { actor: actor.trim() || null, action: action.trim() || null, limit };
}
