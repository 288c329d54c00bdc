// What lies over the page until it is answered or closed.

import * as Dialog from "@radix-ui/react-dialog";
import { classNames } from "../base/class-names.ts";
import styles from "./dialog.module.css";

interface DialogContentProps extends Dialog.DialogContentProps {
  /** In the middle, or a sheet at the right that leaves the page in sight. */
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
