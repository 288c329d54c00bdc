import { describe, expect, it } from "vitest";
import { findAttribute } from "./attributes.ts";
import { toggleRule } from "./changes.ts";
import { attributeOfRule, ruleOfAttribute } from "./rules.ts";
import { INITIAL_SCREEN, parseScreen, serializeScreen } from "./screen.ts";
import { namesCondition, parseWhere, serializeWhere } from "./where.ts";

const read = (link: string) => {
  const { pathname, search } = new URL(link, "http://page");
  return parseScreen(pathname, search, ["overview"]);
};

describe("rules in a link", () => {
  it("hides rules and brings them back", () => {
    const hidden = toggleRule("memory-leak")(toggleRule("idle-corner")(INITIAL_SCREEN));
    expect(serializeScreen(hidden)).toBe("/?rules_hidden=idle-corner,memory-leak");
    expect(read(serializeScreen(hidden))).toEqual({ screen: hidden, notices: [] });
    expect(toggleRule("memory-leak")(toggleRule("idle-corner")(hidden))).toEqual(INITIAL_SCREEN);
  });

  it("says what it cannot read", () => {
    const { screen, notices } = read("/?rules_hidden=No+Rule");
    expect(screen.hiddenRules).toEqual([]);
    expect(notices).toHaveLength(1);
  });

  it("filters by one rule, whatever it is called", () => {
    const where = [[namesCondition(attributeOfRule("r2_stall-x"), ["broken", "past"])]];
    expect(serializeWhere(where)).toEqual(["rule:r2_stall-x:broken,past"]);
    expect(parseWhere(serializeWhere(where), [])).toEqual(where);
    const notices: string[] = [];
    expect(parseWhere(["rule:r2:perhaps"], notices)).toEqual([]);
    expect(notices).toHaveLength(1);
  });

  it("has one attribute for each rule, always the same", () => {
    expect(findAttribute("rule:a")).toBe(findAttribute("rule:a"));
    expect(ruleOfAttribute("rule:a-b_2")).toBe("a-b_2");
    expect(ruleOfAttribute("rule:")).toBeNull();
    expect(ruleOfAttribute("violations")).toBeNull();
  });
});
