// Labels of the access page: roles, sign-in methods, scopes, and the lifetimes of tokens.

import type { Role, Scope, TokenAnswer, Way } from "../../api/generated.ts";

export const ROLE_WORDS: Readonly<Record<Role, string>> = {
  viewer: "Viewer",
  researcher: "Researcher",
  lead: "Project lead",
  operator: "Operator",
  admin: "Administrator",
};

export const WAY_WORDS: Readonly<Record<Way, string>> = {
  static: "server token",
  local: "local account",
  oidc: "single sign-on",
  proxy: "reverse proxy",
};

export const SCOPES: readonly { readonly scope: Scope; readonly title: string; readonly help: string }[] = [
  { scope: "read", title: "Read", help: "all data" },
  { scope: "runs", title: "Send runs", help: "runs and traces from trackers" },
  { scope: "write", title: "Write", help: "rules, mutes, views" },
  { scope: "admin", title: "Administer", help: "accounts, tokens, audit log" },
];

export const LIFETIMES_DAYS = [7, 30, 90, 365] as const;

export function describeState(token: TokenAnswer): "active" | "revoked" | "expired" {
  if (token.revoked_at !== null) return "revoked";
  return token.is_live ? "active" : "expired";
}
