// Requests about rules and which units break them.

import { Problem } from "../base/problem.ts";
import { toQuery } from "../base/request.ts";
import { getJson, send, sendForLines } from "./ask.ts";
import type {
  Across,
  Completion,
  MetricUnit,
  Operator,
  RuleAnswer,
  RuleChange,
  RuleForms,
  RuleList,
  RuleReading,
  RuleTrial,
  Severity,
  StatisticKind,
  TrialAnswer,
  UnitViolations,
  WorkloadVerdicts,
} from "./generated.ts";

export interface MetricWords {
  readonly name: string;
  /** As written in a rule. */
  readonly short: string;
  readonly label: string;
  readonly help: string;
  readonly unit: MetricUnit;
  /** The units that its values may have; the first is the default. */
  readonly units: readonly string[];
  readonly is_summary: boolean;
}

export interface StatisticWords {
  readonly kind: StatisticKind;
  readonly label: string;
  readonly help: string;
  readonly argument: "percentile" | "threshold" | null;
  /** The units of the compared value, if they are the same for every metric. */
  readonly units: readonly string[] | null;
  /** A suffix of the unit of the compared value: `/h` for growth. */
  readonly unit_suffix: string;
}

/** The metrics, statistics and units of the rule language, for forms. */
export interface RuleLanguage {
  readonly metrics: readonly MetricWords[];
  readonly statistics: readonly StatisticWords[];
  readonly operators: readonly Operator[];
  readonly across: readonly { readonly kind: Across; readonly help: string }[];
  readonly severities: readonly Severity[];
  readonly windows_ms: readonly number[];
}

export interface RulesClient {
  list(signal?: AbortSignal): Promise<RuleList>;
  /** Which units break which rules. */
  units(signal?: AbortSignal): Promise<UnitViolations>;
  workload(workload: string, signal?: AbortSignal): Promise<WorkloadVerdicts>;
  language(signal?: AbortSignal): Promise<RuleLanguage>;
  read(forms: RuleForms, signal?: AbortSignal): Promise<RuleReading>;
  complete(text: string, cursor: number, signal?: AbortSignal): Promise<readonly Completion[]>;
  /** Takes seconds; reports progress (0–1) meanwhile. */
  tryOut(trial: RuleTrial, onShare: (share: number) => void, signal?: AbortSignal): Promise<TrialAnswer>;
  save(key: string, change: RuleChange): Promise<RuleAnswer>;
  /** A built-in rule is reset to its default; others are deleted. */
  remove(key: string): Promise<void>;
  order(keys: readonly string[]): Promise<void>;
}

/** One line of the response: exactly one field is set. */
interface TrialLine {
  readonly share?: number;
  readonly answer?: TrialAnswer;
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string | null };
}

/** `at`: the past minute whose violations are requested; null: the present. */
export function createRulesClient(at: number | null): RulesClient {
  return {
    list: (signal) => getJson<RuleList>("/rules", signal),
    units: (signal) => getJson<UnitViolations>(`/violations/units${toQuery({ at })}`, signal),
    workload: (workload, signal) =>
      getJson<WorkloadVerdicts>(`/workloads/${encodeURIComponent(workload)}/rules`, signal),
    language: (signal) => getJson<RuleLanguage>("/rule-language", signal),
    read: async (forms, signal) => (await (await send("POST", "/rules/read", forms, signal)).json()) as RuleReading,
    complete: async (text, cursor, signal) =>
      (await (await send("POST", "/rules/complete", { text, cursor }, signal)).json()) as readonly Completion[],
    async tryOut(trial, onShare, signal) {
      for await (const line of sendForLines("/rules/try", trial, signal)) {
        const { share, answer, error } = line as TrialLine;
        if (answer) return answer;
        if (error) throw new Problem(error.message, { code: error.code, hint: error.hint ?? null });
        if (share !== undefined) onShare(share);
      }
      throw new Problem("The trial ended without a result.", { code: "unreachable", hint: "Try again." });
    },
    save: async (key, change) =>
      (await (await send("PUT", `/rules/${encodeURIComponent(key)}`, change)).json()) as RuleAnswer,
    async remove(key) {
      await send("DELETE", `/rules/${encodeURIComponent(key)}`);
    },
    async order(keys) {
      await send("PUT", "/rule-order", { keys });
    },
  };
}
