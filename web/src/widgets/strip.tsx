// The summary strip above a view: values with their labels, some of which are buttons.

import type { ComponentProps, ReactNode } from "react";
import { classNames } from "../base/class-names.ts";
import styles from "./strip.module.css";

export function Strip({ className, ...props }: ComponentProps<"div">) {
  return <div className={classNames(styles.strip, className)} {...props} />;
}

interface FigureProps {
  readonly value: ReactNode;
  readonly label: ReactNode;
  readonly tip?: string | undefined;
  /** Something is missing or wasted. */
  readonly isBad?: boolean;
  readonly isDisabled?: boolean;
  readonly className?: string | undefined;
  onClick?: (() => void) | undefined;
}

export function Figure({ value, label, tip, isBad, isDisabled, className, onClick }: FigureProps) {
  const look = { className: classNames(styles.figure, className), "data-tip": tip, "data-bad": isBad || undefined };
  const content = (
    <>
      <b>{value}</b>
      <span>{label}</span>
    </>
  );
  if (!onClick) return <div {...look}>{content}</div>;
  return (
    <button type="button" disabled={isDisabled} {...look} onClick={onClick}>
      {content}
    </button>
  );
}

/** A figure that opens something; a popover's trigger hands it the rest. */
export function FigureButton({ isBad, ...props }: ComponentProps<"button"> & { isBad?: boolean }) {
  return <button type="button" className={styles.figure} data-bad={isBad || undefined} {...props} />;
}

/** Figures that are only to be read. */
export function FigureList({ children }: { children: ReactNode }) {
  return <dl className={styles.figures}>{children}</dl>;
}

type FigureTermProps = Pick<FigureProps, "value" | "tip" | "isBad"> & { readonly name: string };

export function FigureTerm({ name, value, tip, isBad }: FigureTermProps) {
  return (
    <div data-tip={tip} data-bad={isBad || undefined}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
