// Hooks for the session, accounts, tokens and the audit log, and for changing them. None of these follows the live
// stream.

import { type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import type { AccessClient, AuditQuery } from "../api/access-client.ts";
import type { AccountAnswer, AuditPage, Role, SessionAnswer, TokenAnswer } from "../api/generated.ts";
import type { Loadable } from "../base/loadable.ts";
import { toProblem } from "../base/problem.ts";
import { useServices } from "./services.ts";

const KEY = "access";

/** In ascending order: each role includes the permissions of those before it. */
export const ROLES: readonly Role[] = ["viewer", "researcher", "lead", "operator", "admin"];

export function useSession(): Loadable<SessionAnswer> {
  const { client } = useServices();
  return toLoadable(useQuery({ queryKey: [KEY, "session"], queryFn: ({ signal }) => client.access.session(signal) }));
}

/** Whether the user has at least the role ``least``. True until known: the server decides anyway. */
export function useMay(least: Role): boolean {
  const role = useSession().value?.who?.role;
  return role === undefined || ROLES.indexOf(role) >= ROLES.indexOf(least);
}

/** Whether the user is ``login`` or an admin. True until known: the server decides anyway. */
export function useOwns(login: string | null): boolean {
  const account = useSession().value?.who;
  return (
    account === undefined || account === null || account.role === "admin" || (login !== null && account.login === login)
  );
}

export function useTokens(everybody: boolean): Loadable<readonly TokenAnswer[]> {
  const { client } = useServices();
  return toLoadable(
    useQuery({
      queryKey: [KEY, "tokens", everybody],
      queryFn: ({ signal }) => client.access.tokens(everybody, signal),
    }),
  );
}

export function useAccounts(): Loadable<readonly AccountAnswer[]> {
  const { client } = useServices();
  return toLoadable(useQuery({ queryKey: [KEY, "accounts"], queryFn: ({ signal }) => client.access.accounts(signal) }));
}

const AUDIT_EVERY_MS = 15_000;

export function useAudit(query: AuditQuery): Loadable<AuditPage> {
  const { client } = useServices();
  return toLoadable(
    useQuery({
      queryKey: [KEY, "audit", query],
      queryFn: ({ signal }) => client.access.audit(query, signal),
      refetchInterval: AUDIT_EVERY_MS,
    }),
  );
}

/** Performs a change, then refetches everything that it may have affected. */
export function useAccessChange(): <T>(change: (client: AccessClient) => Promise<T>) => Promise<T> {
  const { client } = useServices();
  const queries = useQueryClient();
  return async (change) => {
    try {
      return await change(client.access);
    } finally {
      await queries.invalidateQueries({ queryKey: [KEY] });
    }
  };
}

function toLoadable<T>(query: UseQueryResult<T>): Loadable<T> {
  return {
    value: query.data,
    problem: query.error === null ? null : toProblem(query.error),
    receivedAt: query.dataUpdatedAt,
    retry: () => void query.refetch(),
  };
}
