// What of the link could not be shown, and that ingest is paused: said once, above everything, until put away.

import { useState } from "react";
import { useLive } from "../../data/services.ts";
import { useLinkNotices } from "../../state/use-screen.ts";
import { IconButton } from "../../widgets/button.tsx";
import { Icon } from "../../widgets/icon.tsx";
import styles from "./notices.module.css";

export function Notices() {
  const link = useLinkNotices();
  const paused = useLive().version?.paused ?? null;
  const [putAway, setPutAway] = useState<readonly string[]>([]);
  const notices = [...(paused === null ? [] : [`Nothing new is stored: ${paused}`]), ...link];
  const shown = notices.filter((notice) => !putAway.includes(notice));
  if (shown.length === 0) return null;
  return (
    <div className={styles.notices} role="status">
      <Icon name="alert" size={14} />
      <ul>
        {shown.map((notice) => (
          <li key={notice}>{notice}</li>
        ))}
      </ul>
      <IconButton icon="close" label="Put away" onClick={() => setPutAway([...putAway, ...shown])} />
    </div>
  );
}
