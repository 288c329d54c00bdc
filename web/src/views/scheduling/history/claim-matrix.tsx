// Claims by traces: a row for each claim, a column for each trace and one for all of them; a cell leads to the card.

import type { PaperClaim, TraceDescription } from "../../../api/generated.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { Tag } from "../../../widgets/tag.tsx";
import { formatEffect, LABELS, TONES, toClaimId } from "./claim-cards.tsx";
import styles from "./claim-matrix.module.css";

interface ClaimMatrixProps {
  readonly claims: readonly PaperClaim[];
  readonly traces: readonly TraceDescription[];
}

export function ClaimMatrix({ claims, traces }: ClaimMatrixProps) {
  // A claim about all traces has a key and a statement of its own, next to those about each.
  const byKey = Map.groupBy(claims, ({ key }) => key.replace(/_everywhere$/, ""));
  return (
    <div className={styles.matrix}>
      <table aria-label="Claims by trace">
        <thead>
          <tr>
            <th scope="col">Claim</th>
            {traces.map(({ name }, place) => (
              <th key={name} scope="col">
                <i data-swatch={true} style={{ background: colorAt(place) }} /> {name}
              </th>
            ))}
            <th scope="col">Together</th>
          </tr>
        </thead>
        <tbody>
          {[...byKey].map(([key, ofKey]) => (
            <tr key={key}>
              <th scope="row">
                {(ofKey.find((claim) => claim.key === key) ?? ofKey[0])?.statement}
                {ofKey[0]?.takeaway != null && <small>takeaway {ofKey[0].takeaway}</small>}
              </th>
              {traces.map(({ name }) => (
                <Verdicts key={name} claims={ofKey.filter(({ traces: of }) => of.length === 1 && of[0] === name)} />
              ))}
              <Verdicts claims={ofKey.filter(({ traces: of }) => of.length !== 1)} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Verdicts({ claims }: { claims: readonly PaperClaim[] }) {
  return (
    <td>
      {claims.map((claim) => (
        <button
          key={toClaimId(claim)}
          type="button"
          data-verdict={claim.verdict}
          data-tip={claim.sentence}
          onClick={() => showCard(claim)}
        >
          <Tag tone={TONES[claim.verdict]}>{LABELS[claim.verdict]}</Tag>
          <small>{formatEffect(claim)}</small>
        </button>
      ))}
    </td>
  );
}

function showCard(claim: PaperClaim): void {
  const card = document.getElementById(toClaimId(claim));
  card?.scrollIntoView({ block: "center", behavior: "smooth" });
  card?.animate([{ outline: "2px solid var(--accent)" }, { outline: "2px solid transparent" }], { duration: 1600 });
}
