// Changes of rules, with notices and undo.

import { useMemo, useState } from "react";
import type { RuleAnswer } from "../../api/generated.ts";
import { toProblem, toSentence } from "../../base/problem.ts";
import { useRuleActions } from "../../data/rules.ts";
import type { Notice } from "../../widgets/toast.tsx";

export interface RuleChanges {
  readonly notice: Notice | null;
  dismiss(): void;
  /** −1: one place to the front. Only enabled rules have a place one can see. */
  move(key: string, step: -1 | 1): void;
  moveTo(key: string, other: string): void;
  setEnabled(rule: RuleAnswer, isEnabled: boolean): void;
  setColor(rule: RuleAnswer, color: string | null): void;
  /** An own rule goes; a shipped one becomes again what it was. */
  remove(rule: RuleAnswer): void;
}

export function useRuleChanges(rules: readonly RuleAnswer[]): RuleChanges {
  const actions = useRuleActions();
  const [notice, setNotice] = useState<Notice | null>(null);
  return useMemo(() => {
    const attempt = async (action: Promise<unknown>, said: string | null, undo: (() => void) | null = null) => {
      try {
        await action;
        if (said !== null) setNotice({ text: said, undo });
      } catch (error) {
        setNotice({ text: toSentence(toProblem(error).message), undo: null });
      }
    };
    const order = (keys: readonly string[]) => void attempt(actions.order(keys), null);
    const setEnabled = (rule: RuleAnswer, isEnabled: boolean) => {
      const undo = () => void attempt(actions.save(rule.key, { is_enabled: !isEnabled }), null);
      const text = `${rule.name} is ${isEnabled ? "enabled" : "disabled"}.`;
      void attempt(actions.save(rule.key, { is_enabled: isEnabled }), text, undo);
    };
    return {
      notice,
      dismiss: () => setNotice(null),
      move: (key, step) => order(moveKey(rules, key, step)),
      moveTo: (key, other) => order(moveKeyTo(rules, key, other)),
      setEnabled,
      setColor: (rule, color) => void attempt(actions.save(rule.key, { color }), null),
      remove(rule) {
        const keys = rules.map(({ key }) => key);
        const undo = () => void attempt(restore(actions, rule, keys), null);
        const text = rule.is_shipped ? `${rule.name} was reset to its default.` : `${rule.name} was deleted.`;
        void attempt(actions.remove(rule.key), text, undo);
      },
    };
  }, [actions, rules, notice]);
}

async function restore(
  actions: ReturnType<typeof useRuleActions>,
  rule: RuleAnswer,
  keys: readonly string[],
): Promise<void> {
  const { name, severity, color, reason, advice, owner, is_enabled } = rule;
  await actions.save(rule.key, {
    name,
    severity,
    color,
    reason,
    advice,
    owner,
    is_enabled,
    document: partsOf(rule.document),
  });
  await actions.order(keys);
}

/** The parts of a document that define the rule, without its metadata. */
export function partsOf(document: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { expression: document.expression, scope: document.scope };
}

/** Past the next enabled rule: disabled rules have no visible position. */
export function moveKey(rules: readonly RuleAnswer[], key: string, step: -1 | 1): readonly string[] {
  const enabled = rules.filter((rule) => rule.is_enabled || rule.key === key).map((rule) => rule.key);
  const other = enabled[enabled.indexOf(key) + step];
  return other === undefined ? rules.map((rule) => rule.key) : moveKeyTo(rules, key, other);
}

/** To where the other one is, which gives way. */
export function moveKeyTo(rules: readonly RuleAnswer[], key: string, other: string): readonly string[] {
  const keys = rules.map((rule) => rule.key);
  const to = keys.indexOf(other);
  const rest = keys.filter((ruleKey) => ruleKey !== key);
  return to < 0 ? keys : [...rest.slice(0, to), key, ...rest.slice(to)];
}
