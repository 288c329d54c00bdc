// A sort attribute, and a button that reverses the order.

import type { ReactNode } from "react";
import type { SortOrder } from "../../../layout/grammar.ts";
import { Row } from "./fields.tsx";
import styles from "./settings.module.css";

interface OrderRowProps {
  readonly order: SortOrder;
  readonly isDisabled?: boolean;
  readonly children: ReactNode;
  onChange(order: SortOrder): void;
}

export function OrderRow({ order, isDisabled = false, children, onChange }: OrderRowProps) {
  const isRising = order === "ascending";
  return (
    <Row title="Sort">
      <span className={styles.order}>
        {children}
        <button
          type="button"
          aria-label={isRising ? "Ascending" : "Descending"}
          data-tip={isRising ? "Ascending: click to reverse" : "Descending: click to reverse"}
          disabled={isDisabled}
          onClick={() => onChange(isRising ? "descending" : "ascending")}
        >
          {isRising ? "↑" : "↓"}
        </button>
      </span>
    </Row>
  );
}
