import { afterEach, describe, expect, it, vi } from "vitest";
import { Problem } from "./problem.ts";
import { request, toQuery } from "./request.ts";

afterEach(() => vi.unstubAllGlobals());

async function failure(answer: () => Promise<Response>): Promise<Problem> {
  vi.stubGlobal("fetch", answer);
  const error = await request("/api/v1/cluster").catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Problem);
  return error as Problem;
}

describe("request", () => {
  it("takes message and hint from the server", async () => {
    const body = { error: { code: "not_found", message: "there is no node x", hint: "Look at /nodes." } };
    const problem = await failure(async () => Response.json(body, { status: 404 }));
    expect(problem).toMatchObject({ message: "there is no node x", hint: "Look at /nodes.", status: 404 });
  });

  it("says something of an answer in another shape", async () => {
    const problem = await failure(async () => new Response("<html>", { status: 502 }));
    expect(problem).toMatchObject({ message: "The server returned status 502.", hint: null, status: 502 });
  });

  it("says what to do when nobody answers", async () => {
    const problem = await failure(() => Promise.reject(new TypeError("fetch failed")));
    expect(problem).toMatchObject({ code: "unreachable", status: null });
    expect(problem.hint).toContain("running");
  });
});

describe("toQuery", () => {
  it("repeats lists and leaves out what is missing", () => {
    expect(toQuery({ state: ["a", "b"], limit: 5, user: null, node: undefined })).toBe("?state=a&state=b&limit=5");
    expect(toQuery({})).toBe("");
  });
});
