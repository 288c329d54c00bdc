// Hooks for rules and their results, and for changing rules. Changes are shown immediately and reverted if the server
// refuses.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import type { RuleAnswer, RuleChange, RuleList, UnitViolations, WorkloadVerdicts } from "../api/generated.ts";
import type { RuleLanguage, RulesClient } from "../api/rules-client.ts";
import type { Loadable } from "../base/loadable.ts";
import { alignRules, type UnitRules } from "./row-rules.ts";
import { useServices } from "./services.ts";
import type { Units } from "./units.ts";
import { useVersionedQuery } from "./versioned-query.ts";

const LIST_KEY = ["rules"];

export function useRules(): Loadable<RuleList> {
  return useVersionedQuery({
    key: LIST_KEY,
    follows: "rule-book",
    ask: (client, signal) => client.rules.list(signal),
  });
}

/** Which units break which rules at the minute that the screen shows. */
export function useUnitViolations(): Loadable<UnitViolations> {
  return useVersionedQuery({
    key: ["violations", "units"],
    follows: "rules",
    ask: (client, signal) => client.rules.units(signal),
  });
}

export function useWorkloadVerdicts(workload: string): Loadable<WorkloadVerdicts> {
  return useVersionedQuery({
    key: ["workload", workload, "rules"],
    follows: "rule-book",
    ask: (client, signal) => client.rules.workload(workload, signal),
  });
}

export function useRuleLanguage(): RuleLanguage | undefined {
  const { client } = useServices();
  return useQuery({ queryKey: ["rule-language"], queryFn: ({ signal }) => client.rules.language(signal) }).data;
}

interface Joined {
  readonly list: RuleList;
  readonly said: UnitViolations | undefined;
  readonly units: Units;
}

const joined = new WeakMap<Units, Joined>();
let last: UnitRules | null = null;

/** The units with their rule results; computed once for all callers. */
export function useWithRules(units: Units | undefined): Units | undefined {
  const list = useRules().value;
  const violations = useUnitViolations().value;
  return useMemo(() => units && (list ? joinRules(units, list, violations) : units), [units, list, violations]);
}

function joinRules(units: Units, list: RuleList, violations: UnitViolations | undefined): Units {
  const cached = joined.get(units);
  if (cached?.list === list && cached.said === violations) return cached.units;
  last = alignRules(units.snapshot, list.rules, violations, last);
  const withRules = { ...units, rules: last };
  joined.set(units, { list, said: violations, units: withRules });
  return withRules;
}

export interface RuleActions {
  save(key: string, change: RuleChange): Promise<RuleAnswer>;
  remove(key: string): Promise<void>;
  /** All keys in their new order. */
  order(keys: readonly string[]): Promise<void>;
  readonly client: RulesClient;
}

export function useRuleActions(): RuleActions {
  const { client } = useServices();
  const queries = useQueryClient();
  return useMemo(() => {
    const { rules } = client;
    const show = (change: (list: readonly RuleAnswer[]) => readonly RuleAnswer[]) => {
      queries.setQueryData<{ version: string; value: RuleList }>(LIST_KEY, (held) =>
        held ? { ...held, value: { ...held.value, rules: change(held.value.rules) } } : held,
      );
    };
    const refresh = () => queries.invalidateQueries({ queryKey: LIST_KEY });
    return {
      client: rules,
      async save(key, change) {
        const { color, is_enabled } = change;
        show((list) =>
          list.map((rule) =>
            rule.key === key
              ? {
                  ...rule,
                  ...(color !== undefined ? { color } : {}),
                  ...(typeof is_enabled === "boolean" ? { is_enabled } : {}),
                }
              : rule,
          ),
        );
        return rules.save(key, change).finally(refresh);
      },
      remove: (key) => rules.remove(key).finally(refresh),
      async order(keys) {
        show((list) => [...list].sort((a, b) => placeIn(keys, a.key) - placeIn(keys, b.key)));
        await rules.order(keys).finally(refresh);
      },
    };
  }, [client, queries]);
}

function placeIn(keys: readonly string[], key: string): number {
  const place = keys.indexOf(key);
  return place < 0 ? keys.length : place;
}
