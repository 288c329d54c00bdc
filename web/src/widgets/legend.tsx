// A legend: entries of a swatch (`<i data-swatch>`) and its name, wrapped.

import type { ComponentProps } from "react";
import { classNames } from "../base/class-names.ts";
import styles from "./legend.module.css";

export function Legend({ className, ...props }: ComponentProps<"ul">) {
  return <ul className={classNames(styles.legend, className)} {...props} />;
}
