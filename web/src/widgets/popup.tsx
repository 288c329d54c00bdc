// A popover next to a button: a form, a list, a table. Menus are in `menu.tsx`.

import * as Popover from "@radix-ui/react-popover";
import { classNames } from "../base/class-names.ts";
import styles from "./popup.module.css";

/** Stands in a `Popover.Root`, after its trigger. */
export function PopupContent({ className, ...props }: Popover.PopoverContentProps) {
  return (
    <Popover.Portal>
      <Popover.Content className={classNames(styles.popup, className)} sideOffset={6} collisionPadding={8} {...props} />
    </Popover.Portal>
  );
}
