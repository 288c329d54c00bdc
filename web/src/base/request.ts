// Sends a request to the server: returns a successful Response or throws a Problem. Knows no particular request.

import { Problem } from "./problem.ts";
import { noteWarmUp } from "./warm-up.ts";

/** Proves that the request comes from this page: other origins cannot send this header without a preflight. */
export const PAGE_HEADER = "X-ClusterScape-Page";

const WARMING_UP = "warming_up";

/** Retries while the server reports that it is warming up. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  for (;;) {
    const response = await send(path, init);
    if (response.ok) return response;
    const problem = await readProblem(response);
    if (problem.code !== WARMING_UP) throw problem;
    noteWarmUp(problem.message);
    await pause(Number(response.headers.get("Retry-After") ?? 1) * 1000, init.signal ?? null);
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (init.method !== undefined && init.method !== "GET") headers.set(PAGE_HEADER, "1");
  try {
    return await fetch(path, { credentials: "same-origin", ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Problem("The server is not responding.", {
      code: "unreachable",
      hint: "Check that ClusterScape is running and that this machine can reach it.",
    });
  }
}

function pause(ms: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

export async function readProblem(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => null);
  const error = field(body, "error");
  const message = field(error, "message");
  const code = field(error, "code");
  const hint = field(error, "hint");
  return new Problem(typeof message === "string" ? message : `The server returned status ${response.status}.`, {
    code: typeof code === "string" ? code : "http",
    hint: typeof hint === "string" ? hint : null,
    status: response.status,
  });
}

function field(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

/** A query string; null and undefined are omitted, arrays repeat their key. */
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
