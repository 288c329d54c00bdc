// The scheduling page: why a job waits, when it starts, what another policy would do. Tabs are loaded on first use.

import { Suspense } from "react";
import { changeScheduling } from "../../state/scheduling.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Segmented } from "../../widgets/segmented.tsx";
import styles from "./scheduling.module.css";
import { TABS } from "./tabs.ts";

export default function Scheduling() {
  const { scheduling } = useScreen();
  const change = useChangeScreen();
  const activeTab = TABS.find(({ name }) => name === scheduling.tab) ?? TABS[0];
  const Tab = activeTab?.component;
  return (
    <div className={styles.page}>
      {TABS.length > 1 && (
        <nav className={styles.tabs} aria-label="Scheduling">
          <Segmented
            label="Tab"
            name="tab"
            value={activeTab?.name ?? "queue"}
            options={TABS.map(({ name, title }) => ({ value: name, title }))}
            onChange={(tab) => change(changeScheduling({ tab }))}
          />
        </nav>
      )}
      <div className={styles.tab}>
        <Suspense>{Tab && <Tab />}</Suspense>
      </div>
    </div>
  );
}
