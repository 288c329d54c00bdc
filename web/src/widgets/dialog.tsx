// What lies over the page until it is answered or closed.

import * as Dialog from "@radix-ui/react-dialog";
import { classNames } from "../base/class-names.ts";
import styles from "./dialog.module.css";

/** Stands in a `Dialog.Root`. */
export function DialogContent({ className, ...props }: Dialog.DialogContentProps) {
  return (
    <Dialog.Portal>
      <Dialog.Overlay className={styles.overlay} />
      <Dialog.Content className={classNames(styles.dialog, className)} {...props} />
    </Dialog.Portal>
  );
}
