// Budgets: what is used of each, and when it runs out.

import type { BudgetAnswer } from "../../api/generated.ts";
import { formatHours, formatRatio } from "../../base/format.ts";
import styles from "./usage.module.css";
import { formatMoney } from "./words.ts";

export function Budgets({ budgets }: { budgets: readonly BudgetAnswer[] }) {
  if (budgets.length === 0) return null;
  return (
    <section aria-label="Budgets">
      <h2>Budgets</h2>
      <table className={styles.groups}>
        <thead>
          <tr>
            <th scope="col">Budget</th>
            <th scope="col">Of</th>
            <th scope="col">Used</th>
            <th scope="col">Granted</th>
            <th scope="col">Used</th>
            <th scope="col">Time passed</th>
            <th scope="col">Runs out</th>
          </tr>
        </thead>
        <tbody>
          {budgets.map((budget) => (
            <tr key={budget.name}>
              <th scope="row">{budget.name}</th>
              <td>{budget.project ?? budget.user}</td>
              <td>{formatAmount(budget.used, budget)}</td>
              <td>{formatAmount(budget.granted, budget)}</td>
              <td data-bad={budget.used_ratio > budget.time_ratio || undefined}>{formatRatio(budget.used_ratio)}</td>
              <td>{formatRatio(budget.time_ratio)}</td>
              <td>{describeEnd(budget)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function formatAmount(value: number, { currency }: BudgetAnswer): string {
  return currency === null ? `${formatHours(value)}\u00a0GPU-hours` : formatMoney(value, currency);
}

function describeEnd(budget: BudgetAnswer): string {
  if (budget.used >= budget.granted) return "used up";
  if (!budget.has_forecast) return "too little history, or not running";
  if (budget.runs_out_at === null) return "not at this pace";
  const [low, high] = [budget.runs_out_low, budget.runs_out_high];
  const between = low === null ? "" : ` (${formatDay(low)} – ${high === null ? "later" : formatDay(high)})`;
  return `${formatDay(budget.runs_out_at)}${between}`;
}

function formatDay(at: number): string {
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" }).format(at);
}
