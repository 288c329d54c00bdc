// The four shares that users know from jobstats, as bars with their rounding.

import type { JobCard } from "../../api/generated.ts";
import styles from "./job.module.css";
import { describeProblem, isLow, listShares, type ShownShare } from "./words.ts";

export function Shares({ card }: { card: JobCard }) {
  return (
    <section aria-label="Overall utilization">
      <h2>Overall utilization</h2>
      <dl className={styles.shares}>
        {listShares(card).map((shown) => (
          <Row key={shown.name} shown={shown} />
        ))}
      </dl>
    </section>
  );
}

function Row({ shown }: { shown: ShownShare }) {
  const { name, share, used } = shown;
  return (
    <div data-low={isLow(shown) || undefined}>
      <dt>{name}</dt>
      <dd>
        <span className={styles.track} data-missing={share.percent === null || undefined}>
          {share.percent !== null && <i style={{ width: `${Math.min(100, share.percent)}%` }} />}
        </span>
        <b>{share.percent === null ? "unknown" : `${share.percent}%`}</b>
        <span className={styles.used}>{describeProblem(share) ?? used}</span>
      </dd>
    </div>
  );
}
