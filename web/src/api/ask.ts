// How requests are made: paths below the API root, JSON in and out, tables as columns. Knows no particular request.

import { request } from "../base/request.ts";
import { type Columns, decodeColumns } from "./columns.ts";

export const API = "/api/v1";

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(`${API}${path}`, { signal: signal ?? null });
  return (await response.json()) as T;
}

export async function getTable(path: string, signal?: AbortSignal): Promise<Columns> {
  const response = await request(`${API}${path}`, { signal: signal ?? null });
  return decodeColumns(new Uint8Array(await response.arrayBuffer()));
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

/** Reads a response of JSON lines; the last line need not end with a newline. */
export async function* sendForLines(path: string, body: object, signal?: AbortSignal): AsyncGenerator<unknown> {
  const headers = { "Content-Type": "application/json", Accept: "application/x-ndjson" };
  const init = { method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null };
  const { body: stream } = await request(`${API}${path}`, init);
  if (stream === null) return;
  let begun = "";
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (begun + part.value).split("\n");
    begun = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
  if (begun !== "") yield JSON.parse(begun);
}
