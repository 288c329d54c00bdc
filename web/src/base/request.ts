// One way to ask the server: a Response that is fine, or a Problem in words. Knows nothing of what is asked.

import { Problem } from "./problem.ts";

/** Says that this page asks, and not another site's: only a page of the same origin can send it unasked. */
export const PAGE_HEADER = "X-ClusterScape-Page";

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  const headers = new Headers(init.headers);
  if (init.method !== undefined && init.method !== "GET") headers.set(PAGE_HEADER, "1");
  try {
    response = await fetch(path, { credentials: "same-origin", ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Problem("The server does not answer.", {
      code: "unreachable",
      hint: "Check that ClusterScape is running and that this machine can reach it.",
    });
  }
  if (!response.ok) throw await readProblem(response);
  return response;
}

export async function readProblem(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => null);
  const error = field(body, "error");
  const message = field(error, "message");
  const code = field(error, "code");
  const hint = field(error, "hint");
  return new Problem(typeof message === "string" ? message : `The server answered ${response.status}.`, {
    code: typeof code === "string" ? code : "http",
    hint: typeof hint === "string" ? hint : null,
    status: response.status,
  });
}

function field(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

/** A query string of the given parameters; null and undefined are left out, arrays repeat their key. */
export function toQuery(
  parameters: Readonly<Record<string, string | number | readonly string[] | null | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value === null || value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) query.append(key, String(item));
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}
