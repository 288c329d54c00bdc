import { describe, expect, it } from "vitest";
import type { AccountAnswer, Role, SessionAnswer, TokenAnswer, Who } from "../../api/generated.ts";
import { ROLES } from "../../data/access.ts";
import {
  accountKey,
  canCreateToken,
  chooseTable,
  describeAuditRow,
  listScopes,
  listSessionFacts,
  listTables,
  parseProjects,
  toAccountChange,
  toAuditQuery,
  toggleScope,
  toNewAccount,
} from "./access-model.ts";
import { describeState } from "./words.ts";

function session(who: Partial<Who> | null, changes: Partial<SessionAnswer> = {}): SessionAnswer {
  const nobody: Who = { login: null, projects: [], role: "viewer", title: null, way: null };
  return {
    is_open: false,
    password_min_length: 12,
    provider: null,
    takes_password: true,
    takes_token: true,
    who: who && { ...nobody, ...who },
    ...changes,
  };
}

const ACCOUNT: AccountAnswer = {
  created_at: 0,
  is_disabled: false,
  login: "ada",
  projects: ["nlp"],
  role: "lead",
  signed_in_at: null,
  title: null,
  way: "local",
};

const others: readonly Role[] = ROLES.filter((role) => role !== "admin");

describe("what the access page shows", () => {
  it("has tables of everybody for administrators only", () => {
    expect(listTables(session({ role: "admin" })).map(({ table }) => table)).toEqual([
      "mine",
      "accounts",
      "tokens",
      "audit",
    ]);
    for (const role of others) expect(listTables(session({ role })).map(({ table }) => table)).toEqual(["mine"]);
    expect(listTables(session(null)).map(({ table }) => table)).toEqual(["mine"]);
  });

  it("shows the user's own tokens where a link asks for a table of administrators", () => {
    expect(chooseTable(session({ role: "admin" }), "audit")).toBe("audit");
    for (const role of others) expect(chooseTable(session({ role }), "audit")).toBe("mine");
    expect(chooseTable(session(null), "accounts")).toBe("mine");
  });

  it("offers the scope of administrators to them only", () => {
    expect(listScopes(session({ role: "admin" })).map(({ scope }) => scope)).toContain("admin");
    for (const role of others) expect(listScopes(session({ role })).map(({ scope }) => scope)).not.toContain("admin");
  });

  it("offers to create tokens to accounts only", () => {
    expect(canCreateToken(session({ login: "ada" }))).toBe(true);
    expect(canCreateToken(session({ login: null, way: "static" }))).toBe(false);
    expect(canCreateToken(session(null))).toBe(false);
  });

  it("names the signed-in user by title, then by login", () => {
    const signedInName = (who: Partial<Who>, isOpen = false) =>
      listSessionFacts(session(who, { is_open: isOpen })).find(({ label }) => label === "signed in")?.value;
    expect(signedInName({ login: "ada", title: "Ada Lovelace" })).toBe("Ada Lovelace");
    expect(signedInName({ login: "ada" })).toBe("ada");
    expect(signedInName({})).toBe("server token");
    expect(signedInName({}, true)).toBe("anonymous");
  });

  it("lists role, sign-in method and projects, and nothing where nobody is signed in", () => {
    expect(listSessionFacts(session({ login: "ada", role: "lead", way: "oidc", projects: ["nlp", "speech"] }))).toEqual(
      [
        { label: "signed in", value: "ada" },
        { label: "role", value: "Project lead" },
        { label: "sign-in method", value: "single sign-on" },
        { label: "projects", value: "nlp, speech" },
      ],
    );
    expect(listSessionFacts(session({})).map(({ label }) => label)).not.toContain("projects");
    expect(listSessionFacts(session(null))).toEqual([]);
  });
});

describe("what the access page sends", () => {
  it("reads projects with spaces or commas between them", () => {
    expect(parseProjects(" nlp, speech\tvision ,")).toEqual(["nlp", "speech", "vision"]);
    expect(parseProjects("  ")).toEqual([]);
  });

  it("trims the names of a new account but not its password", () => {
    const fields = { login: " joe ", title: "  ", password: " a b ", role: "lead", projects: "nlp" } as const;
    expect(toNewAccount(fields)).toEqual({
      login: "joe",
      title: null,
      password: " a b ",
      role: "lead",
      projects: ["nlp"],
    });
  });

  it("changes only what differs", () => {
    expect(toAccountChange(ACCOUNT, { role: "lead", projects: "nlp", password: "" })).toEqual({ projects: ["nlp"] });
    expect(toAccountChange(ACCOUNT, { role: "operator", projects: "", password: "new one" })).toEqual({
      role: "operator",
      projects: [],
      password: "new one",
    });
  });

  it("distinguishes accounts of the same login by their sign-in method", () => {
    expect(accountKey(ACCOUNT)).not.toBe(accountKey({ ...ACCOUNT, way: "oidc" }));
  });

  it("adds and removes scopes", () => {
    expect(toggleScope(["read"], "runs")).toEqual(["read", "runs"]);
    expect(toggleScope(["read", "runs"], "read")).toEqual(["runs"]);
  });

  it("requests the whole audit log where the boxes are blank", () => {
    expect(toAuditQuery(" ", "", 200)).toEqual({ actor: null, action: null, limit: 200 });
    expect(toAuditQuery(" root ", "sign_in", 1000)).toEqual({ actor: "root", action: "sign_in", limit: 1000 });
  });
});

describe("rows of the access page", () => {
  const token: TokenAnswer = {
    created_at: 0,
    expires_at: 10,
    is_live: true,
    key: "k",
    login: "ada",
    revoked_at: null,
    scopes: ["read"],
    start: "cs_ab",
    title: "export",
    used_at: null,
    way: "local",
  };

  it("show whether a token is active, expired or revoked", () => {
    expect(describeState(token)).toBe("active");
    expect(describeState({ ...token, is_live: false })).toBe("expired");
    expect(describeState({ ...token, is_live: false, revoked_at: 5 })).toBe("revoked");
  });

  it("describe the target of an audit log entry", () => {
    expect(describeAuditRow({ target: "joe", details: { role: "lead", is_disabled: "True" } })).toBe(
      "joe · role lead · is_disabled True",
    );
    expect(describeAuditRow({ target: null, details: {} })).toBe("");
  });
});
