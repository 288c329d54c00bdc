// Buttons: plain, primary, or an icon with an accessible name.

import type { ButtonHTMLAttributes } from "react";
import { classNames } from "../base/class-names.ts";
import styles from "./button.module.css";
import { Icon, type IconName } from "./icon.tsx";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: "plain" | "primary";
}

export function Button({ look = "plain", className, ...rest }: ButtonProps) {
  return <button type="button" {...rest} className={classNames(styles.button, styles[look], className)} />;
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly icon: IconName;
  readonly label: string;
}

export function IconButton({ icon, label, className, ...rest }: IconButtonProps) {
  return (
    <button type="button" aria-label={label} data-tip={label} {...rest} className={classNames(styles.icon, className)}>
      <Icon name={icon} />
    </button>
  );
}
