// How answers are asked for: paths below the API's root, JSON in and out. Knows no questions.

import { request } from "../base/request.ts";

export const API = "/api/v1";

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(`${API}${path}`, { signal: signal ?? null });
  return (await response.json()) as T;
}

export function send(
  method: "PUT" | "POST" | "DELETE",
  path: string,
  body?: object,
  signal?: AbortSignal,
): Promise<Response> {
  const init = { method, signal: signal ?? null };
  if (body === undefined) return request(`${API}${path}`, init);
  const headers = { "Content-Type": "application/json" };
  return request(`${API}${path}`, { ...init, headers, body: JSON.stringify(body) });
}
