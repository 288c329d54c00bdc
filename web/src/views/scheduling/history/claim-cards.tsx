// The claims about such traces, each tested on the ones at hand: the verdict, the effect with its interval, what it rests on.

import type { ClaimVerdict, PaperClaim, TraceDescription } from "../../../api/generated.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { Tag, type Tone } from "../../../widgets/tag.tsx";
import styles from "./claim-cards.module.css";
import { barOf } from "./words.ts";

const WORDS: Readonly<Record<ClaimVerdict, string>> = {
  supported: "supported",
  not_supported: "not supported",
  cannot_tell: "cannot tell",
};
const TONES: Readonly<Record<ClaimVerdict, Tone>> = {
  supported: "ok",
  not_supported: "warn",
  cannot_tell: "neutral",
};

interface ClaimCardsProps {
  readonly claims: readonly PaperClaim[];
  readonly traces: readonly TraceDescription[];
}

export function ClaimCards({ claims, traces }: ClaimCardsProps) {
  return (
    <ul className={styles.cards} aria-label="Verdicts">
      {claims.map((claim) => (
        <li key={`${claim.key} ${claim.traces.join()}`} data-verdict={claim.verdict}>
          <header>
            <Tag tone={TONES[claim.verdict]}>{WORDS[claim.verdict]}</Tag>
            <span className={styles.traces}>
              {claim.takeaway !== null && <small>takeaway {claim.takeaway}</small>}
              {claim.traces.map((name) => (
                <small key={name}>
                  <i
                    data-swatch={true}
                    style={{ background: colorAt(traces.findIndex((trace) => trace.name === name)) }}
                  />{" "}
                  {name}
                </small>
              ))}
            </span>
          </header>
          <h3>{claim.statement}</h3>
          <p>{claim.sentence}</p>
          <Effect claim={claim} />
          <details>
            <summary>What this rests on</summary>
            <p>{claim.rests_on}</p>
            {claim.caveats?.map((caveat) => (
              <p key={caveat}>{caveat}</p>
            ))}
          </details>
        </li>
      ))}
    </ul>
  );
}

const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

/** The interval against no effect: 0, or 1 for a ratio. */
function Effect({ claim }: { claim: PaperClaim }) {
  const { effect, effect_by_user: byUser, effect_unit: unit, effect_name: name } = claim;
  if (!effect) return null;
  const isRatio = unit === "ratio";
  const nothing = isRatio ? 1 : 0;
  const scaled = unit === "share" ? 100 : 1;
  const say = (value: number) =>
    `${value > 0 && !isRatio ? "+" : ""}${digits.format(value * scaled).replace("-", "−")}`;
  const ends = [effect, byUser]
    .flatMap((each) => (each ? [each.value, ...(barOf(each) ?? [])] : []))
    .filter((value) => !isRatio || value > 0);
  const reach = Math.max(1e-9, ...ends.map((value) => Math.abs(isRatio ? Math.log(value) : value - nothing)));
  const place = (value: number) => {
    const away = isRatio ? Math.log(Math.max(value, 1e-9)) : value - nothing;
    return `${50 + Math.max(-1, Math.min(1, away / reach)) * 46}%`;
  };
  const bar = barOf(effect);
  const wide = byUser ? barOf(byUser) : null;
  const suffix = unit === "share" ? " points" : isRatio ? " ×" : ` ${unit}`;
  const words = `${say(effect.value)}${suffix}${bar ? `, 95 % interval ${say(bar[0])} to ${say(bar[1])}` : ""}`;
  return (
    <div className={styles.effect}>
      <div
        className={styles.line}
        role="img"
        aria-label={`${name}: ${words}`}
        data-tip={`${name}: ${words}${wide ? `; with other users ${say(wide[0])} to ${say(wide[1])}` : ""}`}
      >
        <i className={styles.zero} />
        {wide && (
          <i
            className={styles.wide}
            style={{ left: place(wide[0]), width: `calc(${place(wide[1])} - ${place(wide[0])})` }}
          />
        )}
        {bar && (
          <i
            className={styles.interval}
            style={{ left: place(bar[0]), width: `calc(${place(bar[1])} - ${place(bar[0])})` }}
          />
        )}
        <i className={styles.dot} style={{ left: place(effect.value) }} />
      </div>
      <small>
        {words} <span>{name}</span>
      </small>
    </div>
  );
}
