// The rules page: violations by rule, time, user and cost; the rules, mutes and alert channels.

import { useDeferredValue, useEffect, useMemo } from "react";
import type { RuleAnswer, ViolationList } from "../../api/generated.ts";
import { useCluster } from "../../data/queries.ts";
import { useRules } from "../../data/rules.ts";
import { useViolations } from "../../data/violations.ts";
import { colorRules } from "../../parts/rules/rule-colors.ts";
import { useRuleChanges } from "../../parts/rules/use-rule-changes.ts";
import { TimeBar } from "../../parts/time/time-bar.tsx";
import type { Selection } from "../../state/screen.ts";
import { useScreen, useScreenStore } from "../../state/use-screen.ts";
import type { RulesPage } from "../../state/violations.ts";
import { Frame } from "../../widgets/frame.tsx";
import { Toast } from "../../widgets/toast.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { RuleBookPane } from "./book/rule-book-pane.tsx";
import { Controls } from "./controls.tsx";
import { NodeFaults, SourceFaults } from "./details/hardware-details.tsx";
import { ViolationDetails } from "./details/violation-details.tsx";
import { narrow } from "./narrow.ts";
import styles from "./rules.module.css";
import { RulesStrip } from "./strip.tsx";
import { findEvaluation, ViolationTable } from "./table/violation-table.tsx";
import { Timeline } from "./timeline.tsx";
import { Toolbar } from "./toolbar.tsx";

const NO_RULES: readonly RuleAnswer[] = [];

export default function Rules() {
  const { rulesPage: page, selection } = useScreen();
  const violations = useViolations(page);
  const list = useRules();
  const gpus = useCluster().value?.units.total;
  const rules = list.value?.rules ?? NO_RULES;
  const colors = useMemo(() => colorRules(rules), [rules]);
  const changes = useRuleChanges(rules);
  const narrowed = useNarrowed(violations.value, page);
  useUnknownRules(list.value && rules, page.rules, violations.value);
  return (
    <>
      <ViewLayout
        strip={<RulesStrip violations={violations.value} rules={rules} narrowed={narrowed} />}
        controls={
          <Controls page={page} rules={rules} colors={colors} violations={violations.value} narrowed={narrowed} />
        }
        details={selection && <Details selection={selection} rule={page.rule} />}
        time={<TimeBar />}
      >
        <Timeline page={page} rules={rules} colors={colors} />
        <div className={styles.main}>
          <Toolbar page={page} rows={narrowed?.rows} total={violations.value?.violations.length} rules={rules.length} />
          {page.shows === "rules" ? (
            <RuleBookPane list={list} colors={colors} changes={changes} />
          ) : (
            <Frame source={violations} what="violations">
              {(value) =>
                narrowed && (
                  <ViolationTable
                    rows={narrowed.rows}
                    total={value.violations.length}
                    colors={colors}
                    evaluation={list.value && findEvaluation(list.value, gpus)}
                  />
                )
              }
            </Frame>
          )}
        </div>
      </ViewLayout>
      <Toast notice={changes.notice} onDismiss={changes.dismiss} />
    </>
  );
}

const SOURCE = "source:";

function Details({ selection, rule }: { selection: Selection; rule: string | null }) {
  if (selection.kind === "node") return <NodeFaults node={selection.key} rule={rule} />;
  if (selection.kind !== "workload") return null;
  if (selection.key.startsWith(SOURCE)) return <SourceFaults source={selection.key.slice(SOURCE.length)} rule={rule} />;
  return <ViolationDetails workload={selection.key} rule={rule} />;
}

/** Deferred, so that typing stays fast with many violations. */
function useNarrowed(list: ViolationList | undefined, page: RulesPage) {
  const deferredPage = useDeferredValue(page);
  return useMemo(() => list && narrow(list.violations, deferredPage), [list, deferredPage]);
}

/** Explains an empty list where a link names a rule that does not exist and has no violations. */
function useUnknownRules(
  rules: readonly RuleAnswer[] | undefined,
  named: readonly string[],
  list: ViolationList | undefined,
): void {
  const store = useScreenStore();
  useEffect(() => {
    if (!rules || !list) return;
    const ruleKeys = new Set([...rules.map(({ key }) => key), ...list.violations.map(({ rule }) => rule)]);
    const unknown = named.filter((key) => !ruleKeys.has(key));
    if (unknown.length > 0) store.note([`No rule is named ${unknown.join(", ")}.`]);
  }, [rules, named, list, store]);
}
