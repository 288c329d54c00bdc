// A dropdown menu and its entries.

import * as Dropdown from "@radix-ui/react-dropdown-menu";
import type { ReactElement, ReactNode } from "react";
import { Icon } from "./icon.tsx";
import styles from "./menu.module.css";

interface MenuProps {
  /** The button. */
  readonly trigger: ReactElement;
  readonly side?: "bottom" | "right";
  readonly align?: "start" | "end";
  /** Whether it is open, where somebody else decides, too. */
  readonly open?: { readonly isOpen: boolean; setOpen(isOpen: boolean): void };
  readonly children: ReactNode;
}

export function Menu({ trigger, side = "bottom", align = "end", open, children }: MenuProps) {
  return (
    <Dropdown.Root modal={false} {...(open ? { open: open.isOpen, onOpenChange: open.setOpen } : {})}>
      <Dropdown.Trigger asChild>{trigger}</Dropdown.Trigger>
      <Dropdown.Portal>
        <Dropdown.Content className={styles.menu} side={side} align={align} sideOffset={6} collisionPadding={8}>
          {children}
        </Dropdown.Content>
      </Dropdown.Portal>
    </Dropdown.Root>
  );
}

interface MenuItemProps {
  /** At the right end: a key, or what it leads to. */
  readonly hint?: string | undefined;
  /** Whether choosing it leaves the menu open. */
  readonly staysOpen?: boolean;
  readonly children: ReactNode;
  onSelect(): void;
}

export function MenuItem({ hint, staysOpen = false, children, onSelect }: MenuItemProps) {
  const choose = (event: Event) => {
    if (staysOpen) event.preventDefault();
    onSelect();
  };
  return (
    <Dropdown.Item className={styles.item} onSelect={choose}>
      <span>{children}</span>
      {hint && <small>{hint}</small>}
    </Dropdown.Item>
  );
}

interface MenuCheckProps {
  readonly isOn: boolean;
  readonly children: ReactNode;
  onToggle(): void;
}

export function MenuCheck({ isOn, children, onToggle }: MenuCheckProps) {
  return (
    <Dropdown.CheckboxItem className={styles.item} checked={isOn} onCheckedChange={onToggle}>
      <span>{children}</span>
      <Chosen />
    </Dropdown.CheckboxItem>
  );
}

export interface MenuChoice<T extends string> {
  readonly value: T;
  readonly title: string;
  /** Before the title. */
  readonly mark?: ReactNode;
}

interface MenuChoicesProps<T extends string> {
  readonly value: T;
  readonly choices: readonly MenuChoice<T>[];
  onChoose(value: T): void;
}

export function MenuChoices<T extends string>({ value, choices, onChoose }: MenuChoicesProps<T>) {
  return (
    <Dropdown.RadioGroup value={value}>
      {choices.map((choice) => (
        <Dropdown.RadioItem
          key={choice.value}
          value={choice.value}
          className={styles.item}
          onSelect={() => onChoose(choice.value)}
        >
          {choice.mark}
          <span>{choice.title}</span>
          <Chosen />
        </Dropdown.RadioItem>
      ))}
    </Dropdown.RadioGroup>
  );
}

export function SubMenu({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Dropdown.Sub>
      <Dropdown.SubTrigger className={styles.item}>
        <span>{title}</span>
        <small>▸</small>
      </Dropdown.SubTrigger>
      <Dropdown.Portal>
        <Dropdown.SubContent className={styles.menu} sideOffset={4} collisionPadding={8}>
          {children}
        </Dropdown.SubContent>
      </Dropdown.Portal>
    </Dropdown.Sub>
  );
}

/** What the menu is about: a name, and a quieter line below. */
export function MenuHead({ title, detail }: { title: string; detail: string }) {
  return (
    <Dropdown.Label className={styles.head}>
      <b>{title}</b>
      <small>{detail}</small>
    </Dropdown.Label>
  );
}

export function MenuSeparator() {
  return <Dropdown.Separator className={styles.separator} />;
}

function Chosen() {
  return (
    <Dropdown.ItemIndicator>
      <Icon name="check" size={12} />
    </Dropdown.ItemIndicator>
  );
}
