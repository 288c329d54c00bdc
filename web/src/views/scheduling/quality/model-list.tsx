// A card for each model: what it is, what it was made from, when it is made anew, and what it cannot do.

import type { ModelCard, ModelCards } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { formatInstant } from "../../../base/time.ts";
import { useNow } from "../../../widgets/clock-context.ts";
import { Facts } from "../../../widgets/facts.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import styles from "./quality.module.css";

export function ModelList({ cards }: { cards: ModelCards }) {
  return (
    <>
      <h2>Models</h2>
      {cards.models.map((model) => (
        <Model key={model.name} model={model} />
      ))}
      <section aria-label="Assumptions">
        <h2>Assumed of the live queue</h2>
        <ul>
          {cards.assumptions.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      </section>
    </>
  );
}

function Model({ model }: { model: ModelCard }) {
  const now = useNow();
  return (
    <section className={styles.model} aria-label={`Model of ${model.name}`}>
      <header>
        <b>{model.name}</b>
        <Tag tone={model.is_trained ? "ok" : "neutral"}>{model.is_trained ? "learned" : "not learned yet"}</Tag>
      </header>
      <p>{model.method}</p>
      <Facts
        facts={[
          { name: "Made from", value: `${formatCount(model.jobs)} jobs` },
          { name: "Made", value: model.trained_at && formatInstant(model.trained_at, now) },
          {
            name: "Jobs of",
            value:
              model.first_submit_at &&
              `${formatInstant(model.first_submit_at, now)} to ${formatInstant(model.last_submit_at, now)}`,
          },
          {
            name: model.is_trained ? "Anew after" : "Needs",
            value: `${formatCount(model.retrained_after)} more ended jobs`,
          },
        ]}
      />
      <ul>
        {model.limits.map((limit) => (
          <li key={limit}>{limit}</li>
        ))}
      </ul>
    </section>
  );
}
