// Parses a draft when typing pauses, and keeps its form, text and JSON in sync.

import { useEffect, useState } from "react";
import type { RuleAnswer, RuleFault, RuleReading } from "../../../api/generated.ts";
import type { RulesClient } from "../../../api/rules-client.ts";
import { toProblem } from "../../../base/problem.ts";
import { useRuleActions } from "../../../data/rules.ts";
import { type Draft, isFault, makeDraft, readScope, takeReading } from "./draft.ts";

export interface DraftState {
  readonly draft: Draft;
  /** What was read last without a fault. */
  readonly reading: RuleReading | null;
  /** What is wrong with what stands there now. */
  readonly fault: RuleFault | null;
  /** Whether `reading` is of what stands there now. */
  readonly isRead: boolean;
  /** Whether anything was changed that would be lost. */
  readonly isTouched: boolean;
  change(changes: Partial<Draft>): void;
}

const REST_MS = 200;

export function useDraft(rule: RuleAnswer | null): DraftState {
  const { client } = useRuleActions();
  const [draft, setDraft] = useState(() => makeDraft(rule));
  const [reading, setReading] = useState<RuleReading | null>(null);
  const [fault, setFault] = useState<RuleFault | null>(null);
  const [read, setRead] = useState("");
  const [isTouched, setTouched] = useState(false);
  const typed = typedOf(draft);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the typed rule is read, not its metadata
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      const answer = await readDraft(client, draft, abort.signal).catch((error: unknown) => ({
        ...NOT_READ,
        fault: { message: toProblem(error).message, hint: toProblem(error).hint },
      }));
      if (abort.signal.aborted) return;
      setFault(answer.fault);
      setRead(typed);
      if (answer.fault !== null) return;
      setReading(answer);
      setDraft((now) => (typedOf(now) === typed ? takeReading(now, answer) : now));
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [client, typed]);
  return {
    draft,
    reading,
    fault: read === typed ? fault : null,
    isRead: read === typed && fault === null && reading !== null,
    isTouched,
    change: (changes) => {
      setTouched(true);
      setDraft((now) => ({ ...now, ...changes }));
    },
  };
}

/** What of a draft is its rule: the form that leads. */
function typedOf({ source, rows, scope, text, json }: Draft): string {
  return JSON.stringify([source, source === "form" ? [rows, scope] : source === "text" ? text : json]);
}

const NOT_READ: RuleReading = { text: "", words: [], document: null, form: null, fault: null };

async function readDraft(client: RulesClient, draft: Draft, signal: AbortSignal): Promise<RuleReading> {
  if (draft.source === "text") return client.read({ text: draft.text }, signal);
  if (draft.source === "json") {
    const document = parseJson(draft.json);
    return typeof document === "string"
      ? { ...NOT_READ, fault: { message: document, hint: null } }
      : client.read({ document }, signal);
  }
  const scope = readScope(draft.scope);
  if (isFault(scope)) return { ...NOT_READ, fault: scope };
  const conditions = await client.read({ form: draft.rows }, signal);
  if (conditions.document === null) return conditions;
  return client.read({ document: { expression: conditions.document.expression, scope } }, signal);
}

/** The object, or why it is none. */
function parseJson(text: string): Readonly<Record<string, unknown>> | string {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : "A rule must be an object with an expression and a scope.";
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}
