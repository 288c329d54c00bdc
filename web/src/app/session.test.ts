import { describe, expect, it } from "vitest";
import { createSession, takeFailure } from "./session.ts";

function open(address: string) {
  const replaced: string[] = [];
  const url = new URL(address, "http://localhost");
  const location = { pathname: url.pathname, search: url.search } as Location;
  const history = { replaceState: (_: unknown, __: string, to: string) => replaced.push(to) } as unknown as History;
  return { failure: takeFailure({ location, history }), replaced };
}

describe("why signing in failed", () => {
  it("is read from the link once and taken out of it", () => {
    expect(open("/?sign_in=expired")).toEqual({ failure: "expired", replaced: ["/"] });
    expect(open("/rules?table=nodes&sign_in=state")).toEqual({ failure: "state", replaced: ["/rules?table=nodes"] });
  });

  it("is nothing where nobody tried, and the link stays as it is", () => {
    expect(open("/rules?q=x")).toEqual({ failure: null, replaced: [] });
  });
});

describe("a session", () => {
  it("tells its listeners when signing in is needed and when not", () => {
    const session = createSession();
    const changes: boolean[] = [];
    const stop = session.subscribe(() => changes.push(session.isNeeded()));
    session.setNeeded(true);
    session.setNeeded(false);
    stop();
    session.setNeeded(true);
    expect(changes).toEqual([true, false]);
  });

  it("has ended where somebody was in, however many questions fail after the first", () => {
    const session = createSession();
    session.setNeeded(true);
    expect(session.hasEnded()).toBe(false);
    session.setNeeded(false);
    session.setNeeded(true, true);
    session.setNeeded(true, false);
    expect(session.hasEnded()).toBe(true);
    session.setNeeded(false);
    expect(session.hasEnded()).toBe(false);
  });
});
