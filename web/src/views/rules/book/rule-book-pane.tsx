// All rules in their order, with switches; mutes; and alert channels.

import { useState } from "react";
import type { RuleList } from "../../../api/generated.ts";
import type { Loadable } from "../../../base/loadable.ts";
import { useMay } from "../../../data/access.ts";
import { type EditedRule, EditedRuleEditor } from "../../../parts/rules/edited-rule.tsx";
import type { RuleColors } from "../../../parts/rules/rule-colors.ts";
import type { RuleChanges } from "../../../parts/rules/use-rule-changes.ts";
import { Button } from "../../../widgets/button.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import styles from "./book.module.css";
import { ChannelList } from "./channel-list.tsx";
import { MuteList } from "./mute-list.tsx";
import { RuleRow } from "./rule-row.tsx";

interface RuleBookPaneProps {
  readonly list: Loadable<RuleList>;
  readonly colors: RuleColors;
  readonly changes: RuleChanges;
}

export function RuleBookPane({ list, colors, changes }: RuleBookPaneProps) {
  const [edited, setEdited] = useState<EditedRule>(null);
  const mayChange = useMay("operator");
  return (
    <div className={styles.book}>
      <Frame source={list} what="rules">
        {({ rules, unreadable }) => (
          <>
            <section aria-label="All rules">
              <ol className={styles.rules}>
                {rules.map((rule, index) => (
                  <RuleRow
                    key={rule.key}
                    rule={rule}
                    colors={colors}
                    changes={changes}
                    isFirst={index === 0}
                    isLast={index === rules.length - 1}
                    onEdit={() => setEdited(rule)}
                  />
                ))}
              </ol>
              {mayChange && (
                <Button onClick={() => setEdited("new")}>
                  <Icon name="plus" size={14} /> New rule
                </Button>
              )}
            </section>
            <Unreadable faults={unreadable} />
            <EditedRuleEditor edited={edited} rules={rules} onRemove={changes.remove} onClose={() => setEdited(null)} />
          </>
        )}
      </Frame>
      <MuteList rules={list.value?.rules ?? []} />
      <ChannelList />
    </div>
  );
}

function Unreadable({ faults }: { faults: Readonly<Record<string, string>> }) {
  const entries = Object.entries(faults);
  if (entries.length === 0) return null;
  return (
    <section className={styles.unreadable} aria-label="Rules that cannot be read">
      <h2>Cannot be read</h2>
      <p>Written by another version. They are kept but not evaluated.</p>
      <dl>
        {entries.map(([key, reason]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{reason}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
