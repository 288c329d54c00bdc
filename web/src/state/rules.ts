// Rules in a link: which ones the picture hides, and the attribute that holds the result of a rule.

import type { Field } from "./fields.ts";

/** The server's pattern for keys of rules. */
const KEY = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const PREFIX = "rule:";
/** Limits the length of links. */
const MOST_HIDDEN = 200;

export type RuleAttributeName = `rule:${string}`;

/** The result of a rule for an allocated unit; `past`: its workload broke the rule earlier. */
export const RULE_STATES = ["broken", "past", "kept"] as const;

export function attributeOfRule(key: string): RuleAttributeName {
  return `${PREFIX}${key}`;
}

/** The rule's key; null for all other attributes. */
export function ruleOfAttribute(name: string): string | null {
  const key = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : "";
  return KEY.test(key) ? key : null;
}

/** `rules_hidden=idle-corner,memory-leak`: whatever is added later is shown. */
export const hiddenRulesField: Field<readonly string[]> = {
  key: "rules_hidden",
  initial: [],
  parse([text = ""]) {
    const keys = [...new Set(text.split(","))].sort();
    return keys.length <= MOST_HIDDEN && keys.every((key) => KEY.test(key)) ? keys : undefined;
  },
  serialize: (keys) => (keys.length > 0 ? [keys.join(",")] : []),
};
