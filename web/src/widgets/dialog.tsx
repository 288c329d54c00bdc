// A modal dialog.

import * as Dialog from "@radix-ui/react-dialog";
import { classNames } from "../base/class-names.ts";
import styles from "./dialog.module.css";

interface DialogContentProps extends Dialog.DialogContentProps {
  /** In the middle, or as a sheet at the right that leaves the page visible. */
  readonly look?: "dialog" | "sheet";
}

/** Stands in a `Dialog.Root`. */
export function DialogContent({ look = "dialog", className, ...props }: DialogContentProps) {
  return (
    <Dialog.Portal>
      <Dialog.Overlay className={styles.overlay} />
      <Dialog.Content className={classNames(styles[look], className)} {...props} />
    </Dialog.Portal>
  );
}
