// The editor of the rule that is being edited, if there is one.

import { lazy, Suspense } from "react";
import type { RuleAnswer } from "../../api/generated.ts";

// Large, and few open it.
const RuleEditor = lazy(async () => ({ default: (await import("./editor/rule-editor.tsx")).RuleEditor }));

/** Null: no rule is being edited. */
export type EditedRule = RuleAnswer | "new" | null;

interface EditedRuleEditorProps {
  readonly edited: EditedRule;
  readonly rules: readonly RuleAnswer[];
  onRemove(rule: RuleAnswer): void;
  onClose(): void;
}

export function EditedRuleEditor({ edited, ...props }: EditedRuleEditorProps) {
  if (edited === null) return null;
  const rule = edited === "new" ? null : edited;
  return (
    <Suspense>
      <RuleEditor key={rule?.key ?? ""} rule={rule} {...props} />
    </Suspense>
  );
}
