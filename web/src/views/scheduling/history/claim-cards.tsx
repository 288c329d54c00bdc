// Claims of a paper about job traces, tested on the selected ones: verdict, effect with its interval, method and caveats.

import type { ClaimVerdict, PaperClaim, TraceDescription } from "../../../api/generated.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { Tag, type Tone } from "../../../widgets/tag.tsx";
import styles from "./claim-cards.module.css";
import { toInterval } from "./words.ts";

export const LABELS: Readonly<Record<ClaimVerdict, string>> = {
  supported: "supported",
  not_supported: "not supported",
  cannot_tell: "cannot tell",
};
export const TONES: Readonly<Record<ClaimVerdict, Tone>> = {
  supported: "ok",
  not_supported: "warn",
  cannot_tell: "neutral",
};

interface ClaimCardsProps {
  readonly claims: readonly PaperClaim[];
  readonly traces: readonly TraceDescription[];
}

/** Where the card of a claim about these traces is on the page. */
export function toClaimId({ key, traces }: PaperClaim): string {
  return `claim-${key}-${traces.join("-")}`.replaceAll(/\s+/g, "-");
}

export function ClaimCards({ claims, traces }: ClaimCardsProps) {
  return (
    <ul className={styles.cards} aria-label="Verdicts">
      {claims.map((claim) => (
        <li key={toClaimId(claim)} id={toClaimId(claim)} data-verdict={claim.verdict}>
          <header>
            <Tag tone={TONES[claim.verdict]}>{LABELS[claim.verdict]}</Tag>
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
            <summary>Method and caveats</summary>
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

/** `+9.5 points`, `0.31 ×`; null: not measured. */
export function formatEffect({ effect, effect_unit: unit }: PaperClaim): string | null {
  if (!effect) return null;
  const value = effect.value * (unit === "share" ? 100 : 1);
  const sign = value > 0 && unit !== "ratio" ? "+" : "";
  return `${sign}${digits.format(value).replace("-", "−")}${unit === "share" ? " points" : unit === "ratio" ? " ×" : ` ${unit}`}`;
}

/** The effect and its interval compared with no effect: 0, or 1 for a ratio. */
function Effect({ claim }: { claim: PaperClaim }) {
  const { effect, effect_by_user: byUser, effect_unit: unit, effect_name: name } = claim;
  if (!effect) return null;
  const isRatio = unit === "ratio";
  const noEffect = isRatio ? 1 : 0;
  const factor = unit === "share" ? 100 : 1;
  const format = (value: number) =>
    `${value > 0 && !isRatio ? "+" : ""}${digits.format(value * factor).replace("-", "−")}`;
  const ends = [effect, byUser]
    .flatMap((measured) => (measured ? [measured.value, ...(toInterval(measured) ?? [])] : []))
    .filter((value) => !isRatio || value > 0);
  const reach = Math.max(1e-9, ...ends.map((value) => Math.abs(isRatio ? Math.log(value) : value - noEffect)));
  const place = (value: number) => {
    const distance = isRatio ? Math.log(Math.max(value, 1e-9)) : value - noEffect;
    return `${50 + Math.max(-1, Math.min(1, distance / reach)) * 46}%`;
  };
  const bar = toInterval(effect);
  const userInterval = byUser ? toInterval(byUser) : null;
  const suffix = unit === "share" ? " points" : isRatio ? " ×" : ` ${unit}`;
  const words = `${format(effect.value)}${suffix}${bar ? `, 95 % interval ${format(bar[0])} to ${format(bar[1])}` : ""}`;
  return (
    <div className={styles.effect}>
      <div
        className={styles.line}
        role="img"
        aria-label={`${name}: ${words}`}
        data-tip={`${name}: ${words}${userInterval ? `; across users ${format(userInterval[0])} to ${format(userInterval[1])}` : ""}`}
      >
        <i className={styles.zero} />
        {userInterval && (
          <i
            className={styles.userInterval}
            style={{
              left: place(userInterval[0]),
              width: `calc(${place(userInterval[1])} - ${place(userInterval[0])})`,
            }}
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
