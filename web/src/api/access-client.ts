// Requests about the session, accounts, tokens and the audit log.

import { request, toQuery } from "../base/request.ts";
import { API, getJson, send } from "./ask.ts";
import type {
  AccountAnswer,
  AccountChange,
  AuditPage,
  MadeToken,
  NewAccount,
  NewToken,
  SessionAnswer,
  SignIn,
  TokenAnswer,
  Way,
} from "./generated.ts";

export interface AuditQuery {
  readonly actor: string | null;
  /** An action, or a prefix of one. */
  readonly action: string | null;
  readonly limit: number;
}

export interface AccessClient {
  session(signal?: AbortSignal): Promise<SessionAnswer>;
  signIn(form: SignIn): Promise<void>;
  signOut(): Promise<void>;
  /** In every browser. */
  signOutEverywhere(): Promise<void>;
  changePassword(old: string, password: string): Promise<void>;
  /** The user's own tokens, or all tokens. */
  tokens(everybody: boolean, signal?: AbortSignal): Promise<readonly TokenAnswer[]>;
  createToken(token: NewToken): Promise<MadeToken>;
  revokeToken(key: string): Promise<void>;
  accounts(signal?: AbortSignal): Promise<readonly AccountAnswer[]>;
  addAccount(account: NewAccount): Promise<void>;
  changeAccount(way: Way, login: string, change: AccountChange): Promise<void>;
  removeAccount(way: Way, login: string): Promise<void>;
  audit(query: AuditQuery, signal?: AbortSignal): Promise<AuditPage>;
}

/** The address for signing in with a provider; the browser shows `next` afterwards. */
export function providerAddress(next: string): string {
  return `${API}/session/oidc${toQuery({ next })}`;
}

export function createAccessClient(): AccessClient {
  const accountPath = (way: Way, login: string) => `/accounts/${way}/${encodeURIComponent(login)}`;
  return {
    session: (signal) => getJson<SessionAnswer>("/session", signal),
    async signIn(form) {
      await send("POST", "/session", form);
    },
    async signOut() {
      await send("DELETE", "/session");
    },
    async signOutEverywhere() {
      await send("DELETE", "/sessions");
    },
    async changePassword(old, password) {
      await send("PUT", "/session/password", { old, new: password });
    },
    tokens: (everybody, signal) =>
      getJson<readonly TokenAnswer[]>(`/tokens${toQuery({ everybody: everybody ? "true" : null })}`, signal),
    createToken: async (token) => (await (await send("POST", "/tokens", token)).json()) as MadeToken,
    async revokeToken(key) {
      await send("DELETE", `/tokens/${encodeURIComponent(key)}`);
    },
    accounts: (signal) => getJson<readonly AccountAnswer[]>("/accounts", signal),
    async addAccount(account) {
      await send("POST", "/accounts", account);
    },
    async changeAccount(way, login, change) {
      await send("PUT", accountPath(way, login), change);
    },
    async removeAccount(way, login) {
      await request(`${API}${accountPath(way, login)}`, { method: "DELETE" });
    },
    audit: ({ actor, action, limit }, signal) =>
      getJson<AuditPage>(`/audit${toQuery({ actor, action, limit })}`, signal),
  };
}
