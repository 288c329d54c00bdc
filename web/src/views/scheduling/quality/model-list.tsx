// A card for each model: its method, its training data, when it is retrained, and its limits.

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
        <h2>Assumptions about the live queue</h2>
        <ul>
          {cards.assumptions.map((assumption) => (
            <li key={assumption}>{assumption}</li>
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
        <Tag tone={model.is_trained ? "ok" : "neutral"}>{model.is_trained ? "trained" : "not trained yet"}</Tag>
      </header>
      <p>{model.method}</p>
      <Facts
        facts={[
          { name: "Trained on", value: `${formatCount(model.jobs)} jobs` },
          { name: "Trained at", value: model.trained_at && formatInstant(model.trained_at, now) },
          {
            name: "Jobs from",
            value:
              model.first_submit_at &&
              `${formatInstant(model.first_submit_at, now)} to ${formatInstant(model.last_submit_at, now)}`,
          },
          {
            name: model.is_trained ? "Retrained after" : "Needs",
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
